"""Heads that stand out by a measure: the largest value, positional ones, the largest contrast."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tools.papers.corpus_measures import Measures
from tools.papers.head_summary import SelfAttentionSummary

POSITIONAL = 0.9  # share of the tokens at which a positional head's largest weight is (Voita 2019)


class Head(NamedTuple):
    """A head of the encoder.

    Attributes:
        layer: counted from 1, as in the paper.
        head: number of the head in its layer, counted from 1.
        alpha: alpha of the head's mapping.
        score: score by which it was chosen.
    """

    layer: int
    head: int
    alpha: float
    score: float

    @property
    def indices(self) -> tuple[int, int]:
        """Layer and head, counted from 0."""
        return self.layer - 1, self.head - 1


def ranked(scores: Sequence[Sequence[float]], alphas: Sequence[Sequence[float]]) -> list[Head]:
    """Return heads, the largest score first; scores and alphas are `[layer][head]`."""
    heads = [
        Head(layer, head, alphas[layer - 1][head - 1], score)
        for layer, row in enumerate(scores, 1)
        for head, score in enumerate(row, 1)
    ]
    return sorted(heads, key=lambda head: -head.score)


def ranked_at(summary: SelfAttentionSummary, offset: int) -> list[Head]:
    """Return heads by their median weight at an offset, the largest first.

    Args:
        summary: measures of a self-attention.
        offset: offset from a token to the one it attends to; -1: the token before.

    Returns:
        All heads; none if no sentence is long enough to have the offset.
    """
    measures = summary["positional"].get(str(offset))
    return [] if measures is None else ranked(measures["median_weight"], summary["alpha"])


def positional_heads(summary: SelfAttentionSummary, offset: int) -> list[Head]:
    """Return the heads that are positional at an offset, ordered as by `ranked_at`.

    Their largest weight is at the offset for the share `POSITIONAL` of the tokens, or more. Tokens
    at the edge of a sentence, which have no token at the offset, do not count.

    Args:
        summary: measures of a self-attention.
        offset: offset from a token to the one it attends to; -1: the token before.
    """
    heads = ranked_at(summary, offset)
    if not heads:
        return []
    shares = np.array(summary["positional"][str(offset)]["share_largest"])
    return [head for head in heads if shares[head.indices] >= POSITIONAL]


class Contrast(NamedTuple):
    """A head whose density differs between two sentences of equal length.

    Attributes:
        head: scored by the difference.
        denser: index of the sentence in which it is denser.
        sparser: index of the other one.
    """

    head: Head
    denser: int
    sparser: int


def most_varied(measures: Measures, lengths: Mapping[int, int]) -> Contrast | None:
    """Return the largest difference of a head's density at equal length; None if there is none.

    Args:
        measures: measures of the encoder.
        lengths: lengths of the sentences to choose from, by index.
    """
    by_length: dict[int, list[int]] = defaultdict(list)
    for index, length in lengths.items():
        by_length[length].append(index)
    contrasts = [_most_varied_of(measures, indices) for indices in by_length.values()]
    largest = max(contrasts, key=lambda contrast: contrast.head.score, default=None)
    return None if largest is None or largest.head.score == 0 else largest


def _most_varied_of(measures: Measures, indices: Sequence[int]) -> Contrast:
    """Return the largest difference of a head's density between some sentences."""
    density = np.stack([measures.density[index] for index in indices])  # (sentences, layers, heads)
    differences = np.ptp(density, axis=0)
    layer, number = map(int, np.unravel_index(differences.argmax(), differences.shape))
    head_density = density[:, layer, number]
    head = Head(
        layer=layer + 1,
        head=number + 1,
        alpha=float(measures.alphas[layer, number]),
        score=float(differences[layer, number]),
    )
    return Contrast(head, indices[int(head_density.argmax())], indices[int(head_density.argmin())])
