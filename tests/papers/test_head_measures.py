"""Measures of attention heads, against plain loops over layers, heads and queries."""

import math
from typing import NamedTuple

import numpy as np
import pytest

from tools.papers import corpus_measures, head_measures
from tools.papers.head_summary import KindSummary


def sparse_weights(*, seed: int, head_count: int, size: int, causal: bool = False) -> np.ndarray:
    """Return random distributions of two layers, half of whose weights are zero.

    Args:
        seed: of the weights.
        head_count: heads of a layer.
        size: number of tokens.
        causal: whether no query attends to a later key.

    Returns:
        Weights (layers, heads, queries, keys).
    """
    generator = np.random.default_rng(seed)
    weights = generator.random((2, head_count, size, size))
    weights[generator.random(weights.shape) < 0.5] = 0.0
    weights[..., range(size), range(size)] += 0.1  # every query attends to something
    weights = np.tril(weights) if causal else weights
    return weights / weights.sum(-1, keepdims=True)


def entropy(distribution: np.ndarray) -> float:
    return -sum(p * math.log(p) for p in distribution if p > 0)


class Summary(NamedTuple):
    """Weights of two layers with three heads, and what the measures say of them."""

    weights: np.ndarray
    """(layers, heads, queries, keys)"""
    available: list[int]
    """Keys that each query may attend to."""
    measured: KindSummary


@pytest.fixture(params=[False, True], ids=["all keys", "causal"])
def summary(request: pytest.FixtureRequest) -> Summary:
    causal = request.param
    weights = sparse_weights(seed=1, head_count=3, size=5, causal=causal)
    alphas = np.full((2, 3), 1.5)  # not softmax, of which zeros would count as attended
    measures = corpus_measures.Measures(alphas, is_causal=causal)
    measures.add(index=0, weights=weights, tokens=["a"] * 5)
    available = [1, 2, 3, 4, 5] if causal else [5] * 5
    return Summary(weights, available, measures.summary())


def test_divergence_is_that_of_jensen_and_shannon(summary: Summary) -> None:
    """The entropy of the heads' mean, minus the mean of their entropies, divided by its maximum."""
    for layer in range(2):
        divergences = []
        for query, keys in enumerate(summary.available):
            rows = summary.weights[layer, :, query]
            if keys > 1:  # a single key leaves no choice
                spread = entropy(rows.mean(0)) - np.mean([entropy(row) for row in rows])
                divergences.append(spread / math.log(keys))
        assert summary.measured["divergence"][layer] == pytest.approx(np.mean(divergences))


def attended_keys(summary: Summary, layer: int, head: int) -> list[int]:
    """Return the number of keys to which each query of a head gives weight."""
    return [int((row > 0).sum()) for row in summary.weights[layer, head]]


def test_attended_keys_are_counted_for_each_query(summary: Summary) -> None:
    for layer, head in np.ndindex(2, 3):
        mean = np.mean(attended_keys(summary, layer, head))
        assert summary.measured["attended"][layer][head] == pytest.approx(mean)


def test_density_is_the_share_of_the_keys_that_a_query_may_attend_to(summary: Summary) -> None:
    for layer, head in np.ndindex(2, 3):
        counts = attended_keys(summary, layer, head)
        shares = [count / keys for count, keys in zip(counts, summary.available, strict=True)]
        assert summary.measured["density"][layer][head] == pytest.approx(np.mean(shares))


def test_softmax_is_dense_even_where_a_weight_is_zero() -> None:
    """A weight of softmax may round to zero."""
    alphas = np.array([[1.0, 1.5]])  # (layers, heads)
    weights = np.broadcast_to(np.eye(3), (1, 2, 3, 3))
    measures = corpus_measures.Measures(alphas)
    measures.add(index=0, weights=weights, tokens=["a"] * 3)
    assert measures.summary()["density"] == [[1.0, pytest.approx(1 / 3)]]


# --- attention within a word -----------------------------------------------------------------

# The first token of each token's word: the second and third of four tokens are one word.
FIRST_OF_WORD = [0, 1, 1, 3]


def test_the_weight_inside_a_word_is_that_of_all_its_tokens() -> None:
    """The second token gives it to itself and to the third, which belongs to the same word."""
    weights = sparse_weights(seed=4, head_count=2, size=4)
    inside = head_measures.inside(weights, numbers=FIRST_OF_WORD)
    assert inside[..., 1] == pytest.approx(weights[..., 1, 1] + weights[..., 1, 2])


def test_merging_is_the_largest_weight_within_a_word() -> None:
    """A word of one token has what that token gives itself."""
    weights = sparse_weights(seed=4, head_count=2, size=4)
    merging = head_measures.merging(weights, numbers=FIRST_OF_WORD)
    assert merging.shape == (2, 2, 3)  # layers, heads, words
    assert (merging[..., 0] == weights[..., 0, 0]).all()
    assert merging[..., 1] == pytest.approx(np.maximum(weights[..., 1, 2], weights[..., 2, 1]))
