"""Types of `entmax_loss`: scores of 16 bits, and autocast."""

import pytest
import torch
from torch import Tensor

from onmt_entmax.sparse import entmax_loss

half_types = pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])


@pytest.fixture
def half_scores(dtype: torch.dtype) -> Tensor:
    """Scores ``(5, 40)`` of a type."""
    return (torch.randn(5, 40) * 3).to(dtype).requires_grad_()


@pytest.fixture
def target() -> Tensor:
    """A class for each of five rows."""
    return torch.randint(40, (5,))


@half_types
def test_losses_of_16_bits_are_rounded_only_at_the_end(
    half_scores: Tensor, target: Tensor, dtype: torch.dtype
) -> None:
    in_float32 = entmax_loss(half_scores.float(), target)
    assert torch.equal(entmax_loss(half_scores, target), in_float32.to(dtype))


@half_types
def test_gradients_have_the_type_of_scores_of_16_bits(
    half_scores: Tensor, target: Tensor, dtype: torch.dtype
) -> None:
    (gradient,) = torch.autograd.grad(entmax_loss(half_scores, target), half_scores)
    assert gradient.dtype == dtype


@half_types
def test_autocast_gives_losses_in_float32(
    half_scores: Tensor, target: Tensor, dtype: torch.dtype
) -> None:
    with torch.autocast("cpu", dtype=dtype):
        assert entmax_loss(half_scores, target).dtype == torch.float32


@half_types
def test_autocast_rounds_no_score_in_float32(target: Tensor, dtype: torch.dtype) -> None:
    """With weights and smoothing, whose sums autocast would round as matrix products."""
    scores, weight = torch.randn(5, 40) * 3, torch.ones(40)
    plain = entmax_loss(scores, target, weight=weight, label_smoothing=0.1)
    with torch.autocast("cpu", dtype=dtype):
        assert entmax_loss(scores, target, weight=weight, label_smoothing=0.1) == plain
