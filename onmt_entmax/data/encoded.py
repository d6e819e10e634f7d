"""The pairs of a training as ids of its vocabularies, and how they are divided into batches."""

import random
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from onmt_entmax.data.batch import Batch, batch_of_rows
from onmt_entmax.data.shapes import Shapes
from onmt_entmax.data.token_rows import Integers, TokenRows
from onmt_entmax.data.vocabulary import Vocabularies


@dataclass(frozen=True)
class EncodedPairs:
    """Pairs as token ids.

    Attributes:
        source: the sources of all pairs, empty for filtered ones.
        target: the targets of all pairs, likewise.
        kept: `(pairs,)`, False for filtered ones.
        vocabularies: the vocabularies that the ids belong to.
    """

    source: TokenRows
    target: TokenRows
    kept: NDArray[np.bool_]
    vocabularies: Vocabularies

    def groups(self, rows: Integers, seed: str, shapes: Shapes) -> list[Integers]:
        """Divide pairs into groups of similar length, one for each batch, in random order.

        Args:
            rows: the pairs; filtered ones are left out.
            seed: the seed of the order.
            shapes: say how many pairs fill a batch.

        Returns:
            Positions in `rows` of the pairs of each group.
        """
        generator = random.Random(seed)
        order = np.flatnonzero(self.kept[rows]).tolist()
        generator.shuffle(order)  # decides which pairs of equal length share a batch
        places = np.asarray(order, dtype=np.int64)
        groups = shapes.group_lengths(
            source=self.source.lengths(rows[places]), target=self.target.lengths(rows[places])
        )
        batches = [places[group] for group in groups]
        generator.shuffle(batches)
        return batches

    def batch(self, rows: Integers, indices: Integers) -> Batch:
        """Return some pairs as a batch, longest source first.

        Args:
            rows: the pairs.
            indices: the indices of the pairs, which become `Batch.indices`.
        """
        return batch_of_rows(
            source=self.source,
            target=self.target,
            rows=rows,
            indices=indices,
            vocabularies=self.vocabularies,
        )
