"""Many pairs as ids of a vocabulary, and their batches."""

import random
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from onmt_entmax.data.batch import Batch, padded_batch
from onmt_entmax.data.token_rows import Integers, TokenRows
from onmt_entmax.data.vocabulary import Vocabularies


@dataclass(frozen=True)
class EncodedPairs:
    """Pairs as token ids.

    Attributes:
        source: source side of all pairs; that of filtered ones is empty.
        target: target side of all pairs; that of filtered ones is empty.
        kept: `(pairs,)`, False for filtered ones.
        vocabularies: the vocabularies that the ids belong to.
    """

    source: TokenRows
    target: TokenRows
    kept: NDArray[np.bool_]
    vocabularies: Vocabularies

    def groups(
        self, rows: Integers, seed: str, cut: Callable[[Integers, Integers], list[Integers]]
    ) -> list[Integers]:
        """Return the batches of some pairs in random order.

        Args:
            rows: the pairs.
            seed: the seed of the order.
            cut: returns the positions of the pairs of each batch, given the lengths of the sources
                and of the targets of the kept pairs, in random order.

        Returns:
            Positions in `rows` of the pairs of each batch.
        """
        generator = random.Random(seed)
        order = np.flatnonzero(self.kept[rows]).tolist()
        generator.shuffle(order)  # pairs of equal length go together in this order
        places = np.asarray(order, dtype=np.int64)
        source_lengths = self.source.lengths(rows[places])
        target_lengths = self.target.lengths(rows[places])
        batches = [places[group] for group in cut(source_lengths, target_lengths)]
        generator.shuffle(batches)
        return batches

    def batch(self, rows: Integers, indices: Integers) -> Batch:
        """Return some pairs as a batch, longest source first.

        Args:
            rows: the pairs.
            indices: the indices of the pairs, which become `Batch.indices`.
        """
        return padded_batch(self.source, self.target, rows, indices, self.vocabularies)
