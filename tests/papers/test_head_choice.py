"""Positional heads, whose largest weight is mostly at one distance, such as the token before."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from tools.papers import corpus_measures
from tools.papers.head_choice import positional_heads


def attend_to_previous(size: int, elsewhere: Mapping[int, Mapping[int, float]]) -> np.ndarray:
    """Return the weights (queries, keys) of a head that attends to the token before each token.

    Args:
        size: number of tokens; the first attends to itself.
        elsewhere: other weights of some queries: by query and key.
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
    """Measures of two heads for eleven tokens, of which ten have a token before them.

    For 9 of the 10, the largest weight of the first head is at the token before; for 8, that of the
    second head is.
    """
    nine = attend_to_previous(11, elsewhere={1: {5: 1.0}, 2: {1: 0.6, 5: 0.4}})
    eight = attend_to_previous(11, elsewhere={1: {5: 1.0}, 2: {5: 1.0}})
    alphas = np.array([[1.0, 1.5]])  # (layers, heads)
    measures = corpus_measures.Measures("encoder", alphas)
    measures.add(index=0, weights=np.stack([nine, eight])[None], tokens=["a"] * 11)
    measured: Mapping[str, Any] = measures.summary()
    return measured


def test_a_head_is_positional_if_nine_tenths_of_its_largest_weights_are_at_the_offset(
    positional: Mapping[str, Any],
) -> None:
    """Its score is the mean weight at the offset: 1 for eight tokens, 0.6 and 0 for the others."""
    (head,) = positional_heads(positional, offset=-1)
    assert (head.layer, head.head, head.alpha) == (1, 1, 1.0)
    assert head.score == pytest.approx((8 * 1.0 + 0.6 + 0) / 10)


def test_no_head_is_positional_for_another_offset(positional: Mapping[str, Any]) -> None:
    assert positional_heads(positional, offset=1) == []
