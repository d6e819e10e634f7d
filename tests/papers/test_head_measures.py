"""Measures of attention heads against plain loops, and the clusters of subwords that they use."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pytest

from tools.papers import corpus_measures, head_measures, head_tokens
from tools.papers.head_choice import positional_heads


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
    measured: Mapping[str, Any]


@pytest.fixture(params=[False, True], ids=["encoder", "causal decoder"])
def summary(request: pytest.FixtureRequest) -> Summary:
    causal = request.param
    weights = sparse_weights(seed=1, head_count=3, size=5, causal=causal)
    alphas = np.full((2, 3), 1.5)  # not softmax, of which zeros would count as attended
    measures = corpus_measures.Measures("decoder" if causal else "encoder", alphas)
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


# --- words of subwords ---


@pytest.mark.parametrize(
    ("tokens", "clusters"),
    [
        # Each token has the position of the first one of its cluster.
        pytest.param(
            "ein Fuß￭ ball￭ er ￭, rot￭ ￭-￭ weiß ￭.", [0, 1, 1, 1, 4, 5, 5, 5, 8], id="joiners"
        ),
        pytest.param("▁ein ▁Fuß ball er . ▁ja", [0, 1, 1, 1, 4, 5], id="spacers"),
        pytest.param("a fo@@ x @-@ y .", [0, 1, 1, 1, 1, 5], id="continuation marks"),
        pytest.param("a - b", [0, 1, 2], id="a dash between words"),
        pytest.param("name ￭@￭ host", [0, 1, 2], id="a mark that is no hyphen"),
    ],
)
def test_clusters_are_words_of_subwords_with_their_hyphens(
    tokens: str, clusters: list[int]
) -> None:
    """A mark joins a token to its neighbour, unless one of both is punctuation other than a hyphen.

    "￭" joins at the side where it stands, "@@" to the next token. Where any token begins with "▁",
    those without it go on a word. "@-@" is a hyphen that joins on both sides.
    """
    assert head_tokens.clusters(tokens.split()) == clusters


def test_the_weight_inside_a_word_is_that_of_all_its_tokens() -> None:
    """The second token gives it to itself and to the third, which belongs to the same word."""
    weights = sparse_weights(seed=4, head_count=2, size=4)
    inside = head_measures.inside(weights, numbers=[0, 1, 1, 3])
    assert inside[..., 1] == pytest.approx(weights[..., 1, 1] + weights[..., 1, 2])


def test_merging_is_the_largest_weight_within_a_word() -> None:
    """A word of one token has what that token gives itself."""
    weights = sparse_weights(seed=4, head_count=2, size=4)
    merging = head_measures.merging(weights, numbers=[0, 1, 1, 3])
    assert merging.shape == (2, 2, 3)  # layers, heads, words
    assert (merging[..., 0] == weights[..., 0, 0]).all()
    assert merging[..., 1] == pytest.approx(np.maximum(weights[..., 1, 2], weights[..., 2, 1]))


# --- positional heads ------------------------------------------------------------------------


def attend_to_previous(size: int, elsewhere: Mapping[int, Mapping[int, float]]) -> np.ndarray:
    """Return the weights (queries, keys) of a head that attends to the token before.

    Args:
        size: number of tokens; the first attends to itself.
        elsewhere: by query, the weights of keys instead.
    """
    weights = np.eye(size, k=-1)
    weights[0, 0] = 1.0
    for query, row in elsewhere.items():
        weights[query] = 0.0
        for key, weight in row.items():
            weights[query, key] = weight
    return weights


@pytest.fixture
def positional() -> Mapping[str, Any]:
    """Measures of two heads of eleven tokens, of which ten have one before.

    The largest weight is there for 9 of the 10 in the first head, for 8 in the second.
    """
    nine = attend_to_previous(11, elsewhere={1: {5: 1.0}, 2: {1: 0.6, 5: 0.4}})
    eight = attend_to_previous(11, elsewhere={1: {5: 1.0}, 2: {5: 1.0}})
    alphas = np.array([[1.0, 1.5]])  # (layers, heads)
    measures = corpus_measures.Measures("encoder", alphas)
    measures.add(index=0, weights=np.stack([nine, eight])[None], tokens=["a"] * 11)
    measured: Mapping[str, Any] = measures.summary()
    return measured


def test_a_head_is_positional_if_its_largest_weight_is_there_for_nine_tenths(
    positional: Mapping[str, Any],
) -> None:
    """Its score is the mean weight there: 1 for eight tokens, 0.6 and 0 for the others."""
    (head,) = positional_heads(positional, offset=-1)
    assert (head.layer, head.head, head.alpha) == (1, 1, 1.0)
    assert head.score == pytest.approx((8 * 1.0 + 0.6 + 0) / 10)


def test_no_head_is_positional_for_another_offset(positional: Mapping[str, Any]) -> None:
    assert positional_heads(positional, offset=1) == []


def test_softmax_is_dense_even_where_a_weight_rounds_to_zero(
    positional: Mapping[str, Any],
) -> None:
    ((softmax, sparse),) = positional["density"]
    assert softmax == 1.0
    assert sparse < 1
