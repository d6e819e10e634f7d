"""Measures of attention heads, against plain loops over small distributions."""

from __future__ import annotations

import math

import numpy as np
import pytest

from onmt_entmax.figures.heads import (
    Attended,
    HeadMeasures,
    at_offset,
    clusters,
    densities,
    divergence,
    inside,
    interrogation,
    is_question,
    measure,
    merging,
    most_varied,
    positional_heads,
)


def sparse_weights(seed: int, layers: int, heads: int, size: int, causal: bool) -> np.ndarray:
    """Random distributions with zeros; of a causal attention, with nothing ahead."""
    generator = np.random.default_rng(seed)
    weights = generator.random((layers, heads, size, size))
    weights[generator.random(weights.shape) < 0.5] = 0.0
    weights[..., range(size), range(size)] += 0.1
    if causal:
        weights = np.tril(weights)
    return weights / weights.sum(-1, keepdims=True)


def entropy(distribution: np.ndarray) -> float:
    return -sum(p * math.log(p) for p in distribution if p > 0)


@pytest.mark.parametrize("causal", [False, True])
def test_density_counts_the_keys_that_get_weight(causal: bool) -> None:
    weights = sparse_weights(1, 2, 3, 5, causal)
    found = densities(weights, causal)
    for layer, head, query in np.ndindex(found.shape):
        available = query + 1 if causal else 5
        row = weights[layer, head, query]
        assert found[layer, head, query] == sum(p > 0 for p in row) / available


@pytest.mark.parametrize("causal", [False, True])
def test_divergence_is_equation_11_to_the_base_of_the_keys(causal: bool) -> None:
    weights = sparse_weights(2, 2, 3, 5, causal)
    found = divergence(weights, causal)
    queries = range(1, 5) if causal else range(5)  # a single key leaves no choice
    assert found.shape == (2, len(queries))
    for layer in range(2):
        for place, query in enumerate(queries):
            rows = weights[layer, :, query]
            base = math.log(query + 1 if causal else 5)
            expected = (entropy(rows.mean(0)) - np.mean([entropy(row) for row in rows])) / base
            assert found[layer, place] == pytest.approx(expected)


def test_divergence_is_0_for_equal_heads_and_1_for_heads_that_share_nothing() -> None:
    different = np.eye(4)[None, :, None, :].repeat(4, 2)  # head h attends to token h
    assert divergence(different, causal=False) == pytest.approx(np.ones((1, 4)))
    equal = np.eye(4)[None, None].repeat(3, 1)
    assert divergence(equal, causal=False) == pytest.approx(np.zeros((1, 4)))


@pytest.mark.parametrize("offset", [-2, -1, 0, 1, 2])
def test_a_weight_at_an_offset(offset: int) -> None:
    weights = sparse_weights(3, 2, 2, 6, causal=False)
    there, largest = at_offset(weights, offset)
    queries = [q for q in range(6) if 0 <= q + offset < 6]
    assert there.shape == (2, 2, len(queries))
    for place, query in enumerate(queries):
        rows = weights[:, :, query]
        assert (there[..., place] == rows[..., query + offset]).all()
        assert (largest[..., place] == (rows[..., query + offset] == rows.max(-1))).all()


def test_clusters_are_words_of_subwords_with_their_hyphens() -> None:
    joiner = ["ein", "Fuß￭", "ball￭", "er", "￭,", "rot￭", "￭-￭", "weiß", "￭."]
    assert clusters(joiner) == [0, 1, 1, 1, 4, 5, 5, 5, 8]
    spacer = ["▁ein", "▁Fuß", "ball", "er", ".", "▁ja"]
    assert clusters(spacer) == [0, 1, 1, 1, 4, 5]
    assert clusters(["a", "fo@@", "x", "@-@", "y", "."]) == [0, 1, 1, 1, 1, 5]
    assert clusters(["a", "-", "b"]) == [0, 1, 2]  # a dash between words
    assert clusters(["name", "￭@￭", "host"]) == [0, 1, 2]  # no hyphen


def test_weight_inside_clusters_and_their_merging() -> None:
    weights = sparse_weights(4, 2, 2, 4, causal=False)
    numbers = [0, 1, 1, 3]
    within = inside(weights, numbers)
    assert within[..., 1] == pytest.approx(weights[..., 1, 1] + weights[..., 1, 2])
    scores = merging(weights, numbers)
    assert scores.shape == (2, 2, 3)
    assert (scores[..., 0] == weights[..., 0, 0]).all()  # a word of its own: what it gives itself
    merged = np.maximum(weights[..., 1, 2], weights[..., 2, 1])
    assert scores[..., 1] == pytest.approx(merged)


def test_interrogation_is_the_weight_of_question_words_on_the_last_token() -> None:
    words = frozenset({"what", "who"})
    tokens = ["What", "does", "who", "do", "￭?"]
    weights = sparse_weights(5, 1, 2, 5, causal=False)
    assert is_question(tokens, words) is True
    assert is_question([*tokens[:-1], "￭."], words) is False
    assert is_question(["yes", "￭?"], words) is None
    assert (interrogation(weights, tokens, words) == weights[:, :, [0, 2], -1]).all()


def sentence(index: int, tokens: list[str], weights: np.ndarray) -> Attended:
    return Attended(index, tuple(tokens), ("<s>",), {"encoder": weights})


def test_a_head_is_positional_if_its_largest_weight_is_there_for_nine_tenths() -> None:
    size = 11
    sure, unsure = np.eye(size, k=-1), np.eye(size, k=-1)
    sure[0, 0] = unsure[0, 0] = 1.0
    sure[1] = np.eye(size)[5]  # 9 of the 10 tokens that have one before
    unsure[[1, 2]] = np.eye(size)[[5, 5]]
    sure[2] = 0.4 * np.eye(size)[5] + 0.6 * np.eye(size)[1]
    weights = np.stack([sure, unsure])[None]
    alphas = np.array([[1.9, 1.5]])
    measures = measure([sentence(0, ["a"] * size, weights)], {"encoder": alphas}, frozenset())
    found = measures["encoder"].summary()
    heads = positional_heads(found, "encoder", -1)
    assert [(h.layer, h.head, h.alpha) for h in heads] == [(1, 1, 1.9)]
    assert heads[0].score == pytest.approx(0.86)  # (8 + 0.6 + 0) / 10
    assert positional_heads(found, "encoder", 1) == []


def test_softmax_counts_as_dense_even_where_a_weight_rounds_to_zero() -> None:
    weights = np.eye(3)[None, None].repeat(2, 1)
    measures = HeadMeasures("encoder", np.array([[1.0, 1.5]]))
    measures.add(sentence(0, ["a", "b", "c"], weights))
    assert measures.summary()["density"] == [[1.0, pytest.approx(1 / 3)]]
    assert measures.summary()["attended"] == [[3.0, 1.0]]


def test_the_most_varied_head_on_two_sentences_of_equal_length() -> None:
    measures = HeadMeasures("encoder", np.array([[1.2, 1.8]]))
    measures.density = {
        0: np.array([[0.9, 0.5]]),
        1: np.array([[0.8, 0.1]]),
        2: np.array([[0.0, 1.0]]),  # of another length
    }
    found = most_varied(measures, {0: 4, 1: 4, 2: 5})
    assert found is not None
    head, dense, sparse = found
    assert (head.layer, head.head, head.alpha, dense, sparse) == (1, 2, 1.8, 0, 1)
    assert head.score == pytest.approx(0.4)
    assert most_varied(measures, {0: 4, 2: 5}) is None
