"""Properties of entmax that hold for all scores and alphas."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from onmt_entmax.sparse import entmax, log_entmax

ROWS_OF_SCORES = st.lists(st.floats(-50, 50, width=32), min_size=1, max_size=40).map(
    lambda scores: torch.tensor(scores, dtype=torch.float64)
)
ALPHAS_TO_4 = st.floats(1, 4)


@given(ROWS_OF_SCORES, ALPHAS_TO_4)
def test_probabilities_sum_to_one(scores: Tensor, alpha: float) -> None:
    assert float(entmax(scores, alpha).sum()) == pytest.approx(1, abs=1e-12)


@given(ROWS_OF_SCORES, ALPHAS_TO_4, st.floats(-1000, 1000, width=32))
def test_a_shift_of_all_scores_changes_nothing(scores: Tensor, alpha: float, shift: float) -> None:
    # A shift of 1000 rounds scores to 1e-13. Above alpha 2 the slope at the threshold is infinite:
    # up to alpha 4, a probability changes by up to the third root of that.
    tolerance = 1e-9 if alpha <= 2 else 1e-3
    shifted = entmax(scores + shift, alpha)
    assert torch.allclose(shifted, entmax(scores, alpha), rtol=0, atol=tolerance)


@given(ROWS_OF_SCORES, ALPHAS_TO_4)
def test_larger_scores_have_no_less_probability(scores: Tensor, alpha: float) -> None:
    assert (entmax(scores, alpha)[scores.argsort()].diff() >= -1e-12).all()


@given(ROWS_OF_SCORES, ALPHAS_TO_4)
def test_the_order_of_scores_does_not_matter(scores: Tensor, alpha: float) -> None:
    order = scores.argsort()
    assert torch.allclose(entmax(scores[order], alpha), entmax(scores, alpha)[order], atol=1e-12)


@given(ROWS_OF_SCORES, ALPHAS_TO_4, ALPHAS_TO_4)
def test_the_support_of_a_larger_alpha_is_smaller(
    scores: Tensor, alpha: float, other: float
) -> None:
    low, high = sorted((alpha, other))
    # Rounding may move a score across the threshold, where its probability is next to nothing.
    is_in_support_of_high = entmax(scores, high) > 1e-9
    is_in_support_of_low = log_entmax(scores, low) > -torch.inf
    assert not (is_in_support_of_high & ~is_in_support_of_low).any()


def with_a_winner(scores: Tensor, alpha: float) -> Tensor:
    """Return scores whose first is above the others by a little more than 1 / (alpha - 1)."""
    scores = scores.clone()
    scores[0] = scores.max() + 1.000001 / (alpha - 1)
    return scores


@given(ROWS_OF_SCORES, st.floats(1.01, 4))
def test_a_score_beyond_the_margin_has_probability_1(scores: Tensor, alpha: float) -> None:
    assert float(entmax(with_a_winner(scores, alpha), alpha)[0]) == pytest.approx(1, abs=1e-12)


@given(ROWS_OF_SCORES, st.floats(1.01, 4))
def test_a_score_beyond_the_margin_is_the_whole_support(scores: Tensor, alpha: float) -> None:
    logs = log_entmax(with_a_winner(scores, alpha), alpha)
    assert (logs > -torch.inf).nonzero().tolist() == [[0]]
