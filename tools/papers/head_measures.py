"""Measures of attention heads in one sentence; `corpus_measures.py` has those of a corpus.

`head_tables.py` defines them in words. Weights of one kind of attention are
`(layers, heads, queries, keys)`; they are causal if a query attends to no later key.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tools.papers.head_attention import Floats


def available_keys(weights: Floats, causal: bool) -> Floats:
    """Return the number of keys that each query may attend to, `(queries,)`."""
    queries, keys = weights.shape[-2:]
    return np.arange(1.0, queries + 1) if causal else np.full(queries, float(keys))


def divergence(weights: Floats, causal: bool) -> Floats:
    """Return the Jensen-Shannon divergence between the heads of a layer (equation 11).

    Entropies are to the base of the number of available keys, so that 1 is the largest value. A
    query with a single key has none and is left out.

    Returns:
        `(layers, queries with several keys)`.
    """
    available = available_keys(weights, causal)
    distributions = weights[:, :, available > 1]
    base = np.log(available[available > 1])
    return (_entropy(distributions.mean(1)) - _entropy(distributions).mean(1)) / base


def _entropy(distributions: Floats) -> Floats:
    """Return Shannon's entropy of distributions over the last dimension, in nats."""
    safe = np.where(distributions > 0, distributions, 1.0)
    entropies: Floats = -(distributions * np.log(safe)).sum(-1)
    return entropies


class OffsetWeights(NamedTuple):
    """What queries give to the token at an offset, `(layers, heads, queries with such a token)`.

    Attributes:
        weights: the weights.
        is_largest: whether each is the largest weight of its query.
    """

    weights: Floats
    is_largest: NDArray[np.bool_]


def at_offset(weights: Floats, offset: int) -> OffsetWeights:
    """Return the weights of the tokens at an offset from each query.

    Args:
        weights: weights of a self-attention, `(layers, heads, tokens, tokens)`.
        offset: offset from a query to the token; -1: the token before.
    """
    queries = np.arange(max(0, -offset), weights.shape[-2] - max(0, offset))
    at_tokens = weights[:, :, queries, queries + offset]
    return OffsetWeights(at_tokens, at_tokens >= weights[:, :, queries].max(-1))


def inside(weights: Floats, numbers: Sequence[int]) -> Floats:
    """Return the weight inside each token's own cluster, `(layers, heads, tokens)`.

    Args:
        weights: weights of a self-attention, `(layers, heads, tokens, tokens)`.
        numbers: number of each token's cluster, as `head_tokens.clusters` returns them.
    """
    within: Floats = (weights * np.equal.outer(numbers, numbers)).sum(-1)
    return within


def merging(weights: Floats, numbers: Sequence[int]) -> Floats:
    """Return how far each head merges each cluster (section 5.2, footnote 3).

    The score is the largest weight that a token of the cluster gives to the other tokens of the
    cluster together; in a cluster of one token, the weight that it gives itself.

    Args:
        weights: weights of a self-attention, `(layers, heads, tokens, tokens)`.
        numbers: number of each token's cluster, as `head_tokens.clusters` returns them.

    Returns:
        `(layers, heads, clusters)`.
    """
    to_itself = np.diagonal(weights, axis1=-2, axis2=-1)  # (layers, heads, tokens)
    to_others = inside(weights, numbers) - to_itself
    scores = []
    for number in dict.fromkeys(numbers):  # each cluster once, in order
        positions = [position for position, other in enumerate(numbers) if other == number]
        merged = to_others if len(positions) > 1 else to_itself
        scores.append(merged[..., positions].max(-1))
    return np.stack(scores, -1)
