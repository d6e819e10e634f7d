"""The token ids of many sentences in two arrays, which take less memory than lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class TokenRows:
    """Token ids of many sentences, one after the other.

    Attributes:
        ids: ids of all tokens.
        starts: index in `ids` of each sentence's first token, ``(sentences + 1,)``; the last is the
            end.
    """

    ids: NDArray[np.int32]
    starts: Integers

    @classmethod
    def of(cls, sentences: Sequence[Sequence[int]]) -> TokenRows:
        """Return the rows of some sentences, given as token ids."""
        lengths = [0, *map(len, sentences)]
        ids = np.fromiter(chain.from_iterable(sentences), np.int32, sum(lengths))
        return cls(ids, np.cumsum(lengths, dtype=np.int64))

    def lengths(self, rows: Integers) -> Integers:
        """Return the number of tokens of some rows."""
        return self.starts[rows + 1] - self.starts[rows]

    def padded(self, rows: Integers, pad: int) -> tuple[Integers, Integers]:
        """Return the ids of some rows as columns, ``(length, rows)``, and their lengths.

        Args:
            rows: numbers of the rows, in the order of the columns that are returned.
            pad: the id that fills the columns of shorter rows.
        """
        lengths = self.lengths(rows)
        position = np.arange(int(lengths.max(initial=0)))[:, None]
        # After the end of a row, any place that exists will do: `pad` replaces what is there.
        place = np.minimum(self.starts[rows] + position, len(self.ids) - 1)
        return np.where(position < lengths, self.ids[place], pad).astype(np.int64), lengths
