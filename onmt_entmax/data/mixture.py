"""Interleave the lines of several corpora, epoch after epoch."""

from collections.abc import Iterator, Sequence


class Mixture:
    """The lines of all corpora, epoch after epoch.

    A turn reads `weight` lines of each corpus, one corpus after another, as in OpenNMT-py. An epoch
    ends at the line at which the last corpus has been read completely; shorter ones have started
    again by then. Corpora of 3 and 2 lines a0, a1, a2 and b0, b1, of weights 2 and 1:

        epoch 0    a0 a1 b0  a2 a0 b1         two turns, until b is complete
        epoch 1    a1 a2 b0  a0 a1 b1         a goes on where epoch 0 stopped

    Args:
        sizes: number of lines of each corpus, at least 1.
        weights: the weight of each corpus.
    """

    def __init__(self, sizes: Sequence[int], weights: Sequence[int]) -> None:
        self._sizes = sizes
        self._weights = weights
        self._lines = self._lines_of_an_epoch()
        self.epoch_size = sum(self._lines)
        """Number of lines of an epoch"""

    def _lines_of_an_epoch(self) -> list[int]:
        """Return how many lines of each corpus an epoch has.

        The last corpus to be complete has as many as its size. Corpora before it have as many
        turns, corpora after it one turn less.
        """
        pairs = zip(self._sizes, self._weights, strict=True)
        turns = [-(-size // weight) for size, weight in pairs]  # rounded up
        last = max(range(len(turns)), key=lambda corpus: (turns[corpus], corpus))
        lines = [
            (turns[last] - 1 if corpus > last else turns[last]) * weight
            for corpus, weight in enumerate(self._weights)
        ]
        lines[last] = self._sizes[last]
        return lines

    def epoch(self, epoch: int) -> Iterator[tuple[int, int]]:
        """Yield corpus and line, both from 0, of all lines of an epoch, which is counted from 0.

        Each epoch continues where the one before stopped.
        """
        left = list(self._lines)
        line_of = [
            epoch * count % size for count, size in zip(self._lines, self._sizes, strict=True)
        ]
        while any(count > 0 for count in left):
            for corpus, weight in enumerate(self._weights):
                for _ in range(min(weight, left[corpus])):
                    yield corpus, line_of[corpus]
                    line_of[corpus] = (line_of[corpus] + 1) % self._sizes[corpus]
                left[corpus] -= weight
