"""Positional heads, whose largest weight is mostly at one distance, such as the token before."""

from collections.abc import Mapping

import numpy as np
import pytest

from tools.papers.corpus_measures import SelfAttentionMeasures
from tools.papers.head_choice import positional_heads
from tools.papers.head_summary import SelfAttentionSummary

TOKENS = 11  # ten of them have a token before them


def attend_to_previous(other_rows: Mapping[int, Mapping[int, float]]) -> np.ndarray:
    """Return the weights `(queries, keys)` of a head that attends to the token before each token.

    The first token attends to itself.

    Args:
        other_rows: weights by key that replace all those of a query, by the query's position.
    """
    weights = np.eye(TOKENS, k=-1)
    weights[0, 0] = 1.0
    for query, row in other_rows.items():
        weights[query] = 0.0
        for key, weight in row.items():
            weights[query, key] = weight
    return weights


def summary_of(*heads: np.ndarray) -> SelfAttentionSummary:
    """Return the measures of one sentence in a layer that has these heads.

    Args:
        heads: the weights of each, `(queries, keys)`.
    """
    alphas = np.full((1, len(heads)), 1.5)  # (layers, heads)
    measures = SelfAttentionMeasures(alphas, is_causal=False)
    measures.add(index=0, weights=np.stack(heads)[None], tokens=["a"] * TOKENS)
    return measures.summary()


@pytest.fixture
def summary() -> SelfAttentionSummary:
    """Measures of two heads.

    For nine of the ten tokens with a token before them, the largest weight of the first head is at
    that token; for eight, that of the second head is.
    """
    nine = attend_to_previous(other_rows={1: {5: 1.0}, 2: {1: 0.6, 5: 0.4}})
    eight = attend_to_previous(other_rows={1: {5: 1.0}, 2: {5: 1.0}})
    return summary_of(nine, eight)


def test_a_head_is_positional_if_nine_tenths_of_its_largest_weights_are_at_the_offset(
    summary: SelfAttentionSummary,
) -> None:
    assert [head.indices for head in positional_heads(summary, offset=-1)] == [(0, 0)]


def test_the_score_is_the_median_over_sentences_of_the_mean_weight_at_the_offset(
    summary: SelfAttentionSummary,
) -> None:
    """With one sentence it is that sentence's mean: 1 for eight tokens, 0.6 and 0 for two."""
    (head,) = positional_heads(summary, offset=-1)
    assert head.score == pytest.approx((8 * 1.0 + 0.6 + 0) / 10)


def test_positional_heads_are_ordered_by_their_scores() -> None:
    nine = attend_to_previous(other_rows={1: {5: 1.0}})
    ten = attend_to_previous(other_rows={})
    heads = positional_heads(summary_of(nine, ten), offset=-1)
    assert [head.indices for head in heads] == [(0, 1), (0, 0)]


def test_no_head_is_positional_for_another_offset(summary: SelfAttentionSummary) -> None:
    assert positional_heads(summary, offset=1) == []
