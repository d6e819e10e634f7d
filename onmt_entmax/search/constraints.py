"""Constraints on the output: minimum length, repeated n-grams, banned tokens, target prefixes.

They change the question that a search answers, so it counts the probability that they rule out.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from onmt_entmax.config import Checked, option
from onmt_entmax.errors import counted
from onmt_entmax.rules import whole
from onmt_entmax.search.stepper import Stepper


@dataclass(frozen=True)
class Constraints(Checked):
    """Which sequences are allowed; options that OpenNMT-py has keep its names.

    Positions of a forced target prefix are exempt.
    """

    min_length: int = option(0, whole(0, 10**6), "Shortest output, in tokens.", "Outputs")
    """Shortest sequence, without its end symbol."""
    block_ngram_repeat: int = option(
        0,
        whole(0, 10**6),
        "Exclude outputs that repeat an n-gram of this size; 0: none.",
        "Outputs",
    )
    """No sequence may contain an n-gram of this size twice; 0 allows it."""
    ignore_when_blocking: frozenset[int] = frozenset()
    """Token ids; an n-gram with one of them may repeat."""
    banned: frozenset[int] = frozenset()
    """Token ids that no sequence may contain (`-ban_unk_token`: that of `<unk>`)."""

    def forbidden(self, prefix: tuple[int, ...], eos: int) -> set[int]:
        """Return the tokens, other than banned ones, that may not follow a prefix."""
        forbidden = {eos} if len(prefix) < self.min_length else set()
        if self.block_ngram_repeat:
            forbidden |= self._repeating(prefix)
        return forbidden

    def _repeating(self, prefix: tuple[int, ...]) -> set[int]:
        """Return the tokens that would complete an n-gram which the prefix has already."""
        n = self.block_ngram_repeat
        last = prefix[len(prefix) - n + 1 :] if n > 1 else ()
        if len(last) < n - 1 or self.ignore_when_blocking & set(last):
            return set()
        ngrams = (prefix[i : i + n] for i in range(len(prefix) - n + 1))
        repeated = {ngram[-1] for ngram in ngrams if ngram[:-1] == last}
        return repeated - self.ignore_when_blocking


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
