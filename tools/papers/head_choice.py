"""Heads that stand out by a measure: the positional ones, those that merge most, ..."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from tools.papers.head_measures import Measures

POSITIONAL = 0.9  # share of the tokens at which a positional head's largest weight is (Voita 2019)


class Head(NamedTuple):
    """A head of the encoder, counted from 1 as in the paper."""

    layer: int
    head: int
    alpha: float
    score: float

    @property
    def indices(self) -> tuple[int, int]:
        """Layer and head, counted from 0."""
        return self.layer - 1, self.head - 1


def ranked(scores: Any, alphas: Any) -> list[Head]:
    """Return heads, the largest score first."""
    heads = [
        Head(layer, head, alphas[layer - 1][head - 1], score)
        for layer, row in enumerate(scores, 1)
        for head, score in enumerate(row, 1)
    ]
    return sorted(heads, key=lambda head: -head.score)


def positional_heads(measured: Mapping[str, Any], offset: int) -> list[Head]:
    """Return the heads that are positional at an offset, by their median weight there.

    Their largest weight is there for 90 % of the tokens that have one there (Voita et al. 2019).
    """
    measures = measured["positional"].get(str(offset))
    if measures is None:
        return []
    shares = np.array(measures["share_largest"])
    heads = ranked(measures["median_weight"], measured["alpha"])
    return [head for head in heads if shares[head.indices] >= POSITIONAL]


def most_varied(measures: Measures, lengths: Mapping[int, int]) -> tuple[Head, int, int] | None:
    """Return a head, and two sentences of equal length, where its density differs most (Figure 10).

    Args:
        measures: of the encoder.
        lengths: of the sentences to choose from.

    Returns:
        The head scored by the difference, the sentence where it is denser, and the other one; None
        if no density differs.
    """
    groups: dict[int, list[int]] = defaultdict(list)  # by length
    best: tuple[Head, int, int] | None = None
    for index, length in lengths.items():
        groups[length].append(index)
    for indices in groups.values():
        density = np.stack([measures.density[index] for index in indices])
        differences = np.ptp(density, axis=0)
        place = np.unravel_index(differences.argmax(), differences.shape)
        largest = best[0].score if best else 0.0
        if differences[place] > largest:
            column = density[:, place[0], place[1]]
            layer, number = int(place[0]) + 1, int(place[1]) + 1
            head = Head(layer, number, float(measures.alphas[place]), float(differences[place]))
            best = head, indices[int(column.argmax())], indices[int(column.argmin())]
    return best
