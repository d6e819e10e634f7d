"""Constraints on all outputs of a search: minimum length, repeated n-grams, banned tokens.

A search looks for the best outputs that they allow, and counts the probability that they exclude.
`Request` has the constraints on single sentences.
"""

from dataclasses import dataclass

from onmt_entmax.config import Checked, option
from onmt_entmax.rules import whole


@dataclass(frozen=True)
class Constraints(Checked):
    """Which sequences are allowed; options that OpenNMT-py has keep its names.

    A search exempts the positions of a forced prefix: it calls `forbidden` only after them.
    """

    min_length: int = option(0, whole(0, 10**6), "Shortest output, in tokens.", "Outputs")
    """Least number of tokens before the end symbol."""
    block_ngram_repeat: int = option(
        0,
        whole(0, 10**6),
        "Exclude outputs that repeat an n-gram of this size; 0: none.",
        "Outputs",
    )
    """Size of the n-grams that no sequence, with its forced prefix, may have twice; 0: none."""
    ignore_when_blocking: frozenset[int] = frozenset()
    """Token ids; an n-gram with one of them may repeat."""
    banned: frozenset[int] = frozenset()
    """Token ids that no sequence may contain (`-ban_unk_token`: that of `<unk>`)."""

    def forbidden(self, prefix: tuple[int, ...], eos: int) -> set[int]:
        """Return the tokens that may not follow a prefix, besides the banned ones.

        Args:
            prefix: token ids so far, without the start symbol.
            eos: id of the end symbol.
        """
        forbidden = {eos} if len(prefix) < self.min_length else set()
        if self.block_ngram_repeat:
            forbidden |= self._repeating(prefix)
        return forbidden

    def _repeating(self, prefix: tuple[int, ...]) -> set[int]:
        """Return the tokens that would complete an n-gram that is in the prefix already."""
        n = self.block_ngram_repeat
        last = prefix[len(prefix) - n + 1 :] if n > 1 else ()
        if len(last) < n - 1 or self.ignore_when_blocking & set(last):
            return set()
        ngrams = (prefix[i : i + n] for i in range(len(prefix) - n + 1))
        repeated = {ngram[-1] for ngram in ngrams if ngram[:-1] == last}
        return repeated - self.ignore_when_blocking
