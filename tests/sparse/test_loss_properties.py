"""Properties of the loss that hold for all scores, targets and alphas."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from onmt_entmax.sparse import entmax, entmax_loss
from onmt_entmax.sparse.entropy import tsallis_entropy


def rows_of_scores(count: int) -> st.SearchStrategy[list[Tensor]]:
    """Rows of the same length, from 2 to 20."""

    def of_length(length: int) -> st.SearchStrategy[list[Tensor]]:
        row = st.lists(st.floats(-20, 20), min_size=length, max_size=length)
        tensor = row.map(lambda scores: torch.tensor(scores, dtype=torch.float64))
        return st.lists(tensor, min_size=count, max_size=count)

    return st.integers(2, 20).flatmap(of_length)


ALPHAS_TO_3 = st.floats(1, 3)
CLASS_1 = torch.tensor(1)


def divergence(z: Tensor, target: Tensor, alpha: float) -> float:
    """Return the Fenchel-Young loss of a distribution: without its entropy."""
    return float(entmax_loss(z, target, alpha) - tsallis_entropy(target, alpha))


@given(rows_of_scores(2), ALPHAS_TO_3, st.floats(0, 1))
def test_the_loss_is_convex_and_not_negative(
    rows: list[Tensor], alpha: float, share: float
) -> None:
    one, other = rows
    ends = [entmax_loss(z, CLASS_1, alpha) for z in rows]
    between = entmax_loss(one + share * (other - one), CLASS_1, alpha)
    assert 0 <= between <= (1 - share) * ends[0] + share * ends[1] + 1e-9


@given(rows_of_scores(2), ALPHAS_TO_3)
def test_the_divergence_is_not_negative(rows: list[Tensor], alpha: float) -> None:
    z, other = rows
    assert divergence(z, entmax(other, alpha), alpha) >= -1e-6


@given(rows_of_scores(1), ALPHAS_TO_3)
def test_the_divergence_of_the_own_probabilities_is_0(rows: list[Tensor], alpha: float) -> None:
    (z,) = rows
    assert divergence(z, entmax(z, alpha), alpha) == pytest.approx(0, abs=1e-6)


@given(rows_of_scores(1), st.floats(1.5, 3, exclude_min=True))
def test_the_loss_of_a_class_is_0_beyond_the_margin(rows: list[Tensor], alpha: float) -> None:
    (z,) = rows
    z[1] = -100
    z[1] = z.max() + 1 / (alpha - 1) + 1e-9
    assert entmax_loss(z, CLASS_1, alpha) == 0
    z[1] -= 0.1
    assert entmax_loss(z, CLASS_1, alpha) > 0
