"""Properties of the loss that hold for all scores, targets and alphas."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from onmt_entmax.sparse import entmax, entmax_loss
from onmt_entmax.sparse.entropy import tsallis_entropy

SCORES = st.floats(-20, 20)
ROWS = st.lists(SCORES, min_size=2, max_size=20).map(
    lambda scores: torch.tensor(scores, dtype=torch.float64)
)
# Two rows of the same length, ``(2, n)``: a score of each for every class.
PAIRS_OF_ROWS = st.lists(st.tuples(SCORES, SCORES), min_size=2, max_size=20).map(
    lambda classes: torch.tensor(classes, dtype=torch.float64).T
)
ALPHAS_TO_3 = st.floats(1, 3)
CLASS_1 = torch.tensor(1)
# Above alpha 2, a rounding of 1e-16 of a score changes probabilities by up to its root, 1e-8.
ROUNDING = 1e-6


def divergence(row: Tensor, target: Tensor, alpha: float) -> float:
    """Return the Fenchel-Young divergence: the loss of a distribution, less its entropy."""
    return float(entmax_loss(row, target, alpha) - tsallis_entropy(target, alpha))


@given(ROWS, ALPHAS_TO_3)
def test_the_loss_is_not_negative(row: Tensor, alpha: float) -> None:
    assert entmax_loss(row, CLASS_1, alpha) >= 0


@given(PAIRS_OF_ROWS, ALPHAS_TO_3, st.floats(0, 1))
def test_the_loss_is_convex(rows: Tensor, alpha: float, share: float) -> None:
    """Between two rows it is at most the straight line between their losses."""
    first, second = rows
    line = torch.lerp(
        entmax_loss(first, CLASS_1, alpha), entmax_loss(second, CLASS_1, alpha), share
    )
    loss = entmax_loss(torch.lerp(first, second, share), CLASS_1, alpha)
    assert loss <= line + 1e-9  # for rounding


@given(PAIRS_OF_ROWS, ALPHAS_TO_3)
def test_the_divergence_is_not_negative(rows: Tensor, alpha: float) -> None:
    row, other = rows
    assert divergence(row, entmax(other, alpha), alpha) >= -ROUNDING


@given(ROWS, ALPHAS_TO_3)
def test_the_divergence_of_a_rows_probabilities_from_its_scores_is_0(
    row: Tensor, alpha: float
) -> None:
    assert divergence(row, entmax(row, alpha), alpha) == pytest.approx(0, abs=ROUNDING)


def with_margin(row: Tensor, margin: float) -> Tensor:
    """Return a row in which class 1 exceeds the largest other class by a margin."""
    row = row.clone()
    row[1] = -torch.inf
    row[1] = row.max() + margin
    return row


# With lower alphas, the loss of a class 0.1 below the margin may round to 0.
ALPHAS_FROM_1_5 = st.floats(1.5, 3, exclude_min=True)


@given(ROWS, ALPHAS_FROM_1_5)
def test_the_loss_of_a_class_beyond_the_margin_is_0(row: Tensor, alpha: float) -> None:
    margin = 1 / (alpha - 1)
    assert entmax_loss(with_margin(row, margin + 1e-9), CLASS_1, alpha) == 0


@given(ROWS, ALPHAS_FROM_1_5)
def test_the_loss_of_a_class_below_the_margin_is_positive(row: Tensor, alpha: float) -> None:
    margin = 1 / (alpha - 1)
    assert entmax_loss(with_margin(row, margin - 0.1), CLASS_1, alpha) > 0
