"""Checks of the token ids and prefixes that callers of a search give."""

from collections.abc import Iterable, Sequence

from onmt_entmax.errors import counted
from onmt_entmax.search.stepper import Stepper


def check_tokens(tokens: Iterable[int], vocabulary_size: int) -> None:
    """Check that token ids are in the vocabulary; NumPy would take a negative one from the end.

    Raises:
        ValueError: if an id is not in the vocabulary.
    """
    for token in tokens:
        if not 0 <= token < vocabulary_size:
            size = counted(vocabulary_size, "token")
            raise ValueError(f"token {token} is not in the vocabulary of {size}")


def checked_prefixes(
    prefixes: Sequence[Sequence[int]] | None, sentences: int, stepper: Stepper, max_length: int
) -> Sequence[Sequence[int]]:
    """Return the prefixes after checking that outputs can start with them.

    Args:
        prefixes: the token ids of a prefix for each sentence; None: empty ones.
        sentences: the number of sentences.
        stepper: has the vocabulary, and the tokens that no output has.
        max_length: the most tokens of an output.

    Raises:
        ValueError: if there is not one prefix for each sentence, or a prefix is too long or has a
            token that no output has.
    """
    if prefixes is None:
        return [()] * sentences
    if len(prefixes) != sentences:
        raise ValueError(f"{counted(len(prefixes), 'prefix')} for {counted(sentences, 'sentence')}")
    for prefix in prefixes:
        check_tokens(prefix, stepper.vocabulary_size)
        if stepper.eos in prefix:
            raise ValueError("a prefix has the end symbol in it, and no output goes on after that")
        if never := {*prefix} & {*stepper.excluded}:
            raise ValueError(f"a prefix has token {min(never)}, which no output has")
        if len(prefix) > max_length:
            raise ValueError(f"a prefix has {len(prefix)} tokens, max_length is {max_length}")
    return prefixes
