"""Checks of the token ids and prefixes that callers of a search give."""

from collections.abc import Iterable, Sequence

from onmt_entmax.errors import counted
from onmt_entmax.search.stepper import Stepper


def check_tokens(tokens: Iterable[int], vocabulary_size: int) -> None:
    """Check that ids are in the vocabulary; a negative one would index from its end.

    Raises:
        ValueError: if one is not.
    """
    for token in tokens:
        if not 0 <= token < vocabulary_size:
            size = counted(vocabulary_size, "token")
            raise ValueError(f"token {token} is not in the vocabulary of {size}")


def checked_prefixes(
    prefixes: Sequence[Sequence[int]] | None, sentences: int, stepper: Stepper, max_length: int
) -> Sequence[Sequence[int]]:
    """Return a prefix for each sentence, of tokens that an output may have; empty ones for None.

    Raises:
        ValueError: if their number is another, or one is longer than an output may be, or has a
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
