"""The loss at the margin: it is 0 once the target's score is 1 / (alpha - 1) above every other.

The target is a class or a distribution, and alpha a number or one for each row.
"""

from collections.abc import Iterator
from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from onmt_entmax.sparse import entmax_loss
from tests.oracles import entmax_oracle
from tests.sparse.alphas import forms_of_alpha

CLASSES = 12
SHARES = torch.logspace(-1, -6, 40, dtype=torch.float64)  # of the margin
# Rows below the margin, the first of them by a tenth; and rows beyond it, as far.
BELOW, BEYOND = slice(0, len(SHARES)), slice(len(SHARES), 2 * len(SHARES))
FARTHEST_BELOW = BELOW.start
# Ten rows beyond the margin by a share of 0.1 to about 0.007, and four by less than 3e-6, which in
# float32 is about a rounding of the scores.
FAR_BEYOND = slice(BEYOND.start, BEYOND.start + 10)
HARDLY_BEYOND = slice(BEYOND.stop - 4, BEYOND.stop)


def rows_around_the_margin(alpha: float) -> Tensor:
    """Return scores ``(80, 12)`` whose first one leads by the margin, but for a share of it.

    It leads by less in the rows BELOW, and by more in the rows BEYOND: first by a tenth of the
    margin, then by smaller and smaller SHARES.
    """
    lead = torch.cat([1 - SHARES, 1 + SHARES]) / (alpha - 1)
    scores = torch.rand(len(lead), CLASSES, dtype=torch.float64) * -3
    scores[:, 0] = scores[:, 1:].amax(1) + lead
    return scores


class Losses(NamedTuple):
    """Losses of rows around the margin ``(80,)``, and their gradient ``(80, 12)``."""

    scores: Tensor
    losses: Tensor
    gradient: Tensor


def losses(dtype: torch.dtype, device: str, alpha: float, target: str) -> Iterator[Losses]:
    """Yield the losses whose target is the first class, for each form of alpha.

    Args:
        dtype: of the scores.
        device: of the scores.
        alpha: of all rows.
        target: "classes", or "distributions" that have them alone.
    """
    rows = rows_around_the_margin(alpha).to(device, dtype)
    targets = torch.zeros(len(rows), dtype=torch.long, device=device)
    if target == "distributions":
        targets = torch.nn.functional.one_hot(targets, CLASSES).to(dtype)
    for form in forms_of_alpha(alpha, rows):
        scores = rows.clone().requires_grad_()
        losses = entmax_loss(scores, targets, form, reduction="none")
        (gradient,) = torch.autograd.grad(losses.sum(), scores)
        yield Losses(rows, losses.detach(), gradient)


def rounding(dtype: torch.dtype) -> float:
    """Return about ten roundings of a number near 1."""
    return 16 * torch.finfo(dtype).eps


dtypes = pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
alphas = pytest.mark.parametrize("alpha", [1.1, 1.2, 1.5, 2.0, 2.5])
forms_of_target = pytest.mark.parametrize("target", ["classes", "distributions"])


@dtypes
@alphas
@forms_of_target
def test_no_loss_is_negative(dtype: torch.dtype, device: str, alpha: float, target: str) -> None:
    for result in losses(dtype, device, alpha, target):
        assert (result.losses >= 0).all()


@alphas
@forms_of_target
def test_a_loss_below_the_margin_is_positive(device: str, alpha: float, target: str) -> None:
    """At alpha 1.1, the loss is about 1e-11: nearer to the margin, or in float32, it is rounded."""
    for result in losses(torch.float64, device, alpha, target):
        assert result.losses[FARTHEST_BELOW] > 0


@dtypes
@alphas
@forms_of_target
def test_losses_beyond_the_margin_are_small(
    dtype: torch.dtype, device: str, alpha: float, target: str
) -> None:
    for result in losses(dtype, device, alpha, target):
        assert (result.losses[BEYOND] <= rounding(dtype) / (alpha - 1)).all()


@dtypes
@alphas
def test_losses_of_a_class_far_beyond_the_margin_are_0(
    dtype: torch.dtype, device: str, alpha: float
) -> None:
    for result in losses(dtype, device, alpha, "classes"):
        assert not result.losses[FAR_BEYOND].any()


@alphas
def test_losses_of_a_class_hardly_beyond_the_margin_are_0_in_float64(
    device: str, alpha: float
) -> None:
    for result in losses(torch.float64, device, alpha, "classes"):
        assert not result.losses[HARDLY_BEYOND].any()


@dtypes
@alphas
@forms_of_target
def test_gradients_are_those_of_the_definition(
    dtype: torch.dtype, device: str, alpha: float, target: str
) -> None:
    # Above alpha 2, a probability is a root of a base that is rounded.
    error = rounding(dtype)
    tolerance = error / (alpha - 1) if alpha <= 2 else error ** (1 / (alpha - 1))
    for result in losses(dtype, device, alpha, target):
        exact = entmax_oracle(result.scores, alpha)
        exact[:, 0] -= 1
        assert ((result.gradient - exact).abs() <= tolerance).all()
