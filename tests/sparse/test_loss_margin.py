"""The loss near the margin: it is 0 once the target's score is 1 / (alpha - 1) above every other.

The target is a class or a distribution, and alpha a number or one for each row.
"""

from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from onmt_entmax.sparse import entmax_loss
from tests.oracles import entmax_oracle
from tests.sparse.alphas import as_number_and_tensor

CLASSES = 12
# By how much the lead of the first score misses the margin, as shares of the margin: a row for
# each, from the farthest to the nearest.
SHARES = torch.logspace(-1, -6, 40, dtype=torch.float64)
FAR = slice(0, 10)  # rows with shares of 0.1 to about 0.007
NEAR = slice(-4, None)  # rows with shares below 3e-6: in float32 about a rounding of the scores


class Losses(NamedTuple):
    """Losses of rows on one side of the margin, from the farthest to the nearest.

    Attributes:
        scores: ``(40, 12)``.
        losses: ``(40,)``.
        gradient: gradient of the losses in the scores, ``(40, 12)``.
    """

    scores: Tensor
    losses: Tensor
    gradient: Tensor


class Case(NamedTuple):
    """Arguments of a loss whose target is the first class.

    Attributes:
        dtype: type of the scores.
        device: device of the scores.
        alpha: alpha of all rows.
        has_alphas: whether alpha is a tensor with one for each row, not a number.
        has_distributions: whether targets are distributions, not classes.
    """

    dtype: torch.dtype
    device: str
    alpha: float
    has_alphas: bool
    has_distributions: bool = False

    def losses_below(self) -> Losses:
        """Return losses of rows whose first score leads by less than the margin."""
        return self._losses(1 - SHARES)

    def losses_beyond(self) -> Losses:
        """Return losses of rows whose first score leads by more than the margin."""
        return self._losses(1 + SHARES)

    def _losses(self, leads: Tensor) -> Losses:
        """Return losses of rows ``(40, 12)`` whose first score leads by these shares ``(40,)``."""
        rows = torch.rand(len(leads), CLASSES, dtype=torch.float64) * -3
        rows[:, 0] = rows[:, 1:].amax(1) + leads / (self.alpha - 1)
        rows = rows.to(self.device, self.dtype)
        targets = torch.zeros(len(rows), dtype=torch.long, device=self.device)
        if self.has_distributions:
            targets = torch.nn.functional.one_hot(targets, CLASSES).to(self.dtype)
        number, per_row = as_number_and_tensor(self.alpha, rows)
        scores = rows.clone().requires_grad_()
        alpha = per_row if self.has_alphas else number
        losses = entmax_loss(scores, targets, alpha, reduction="none")
        (gradient,) = torch.autograd.grad(losses.sum(), scores)
        return Losses(rows, losses.detach(), gradient)


@pytest.fixture(params=[1.1, 1.2, 1.5, 2.0, 2.5])
def alpha(request: pytest.FixtureRequest) -> float:
    return float(request.param)


@pytest.fixture(params=[False, True], ids=["a number", "one for each row"])
def has_alphas(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture(params=[torch.float64, torch.float32])
def class_case(request: pytest.FixtureRequest, device: str, alpha: float, has_alphas: bool) -> Case:
    """A loss of a class, in float64 and float32."""
    return Case(request.param, device, alpha, has_alphas)


@pytest.fixture(params=[False, True], ids=["class", "distribution"])
def case(request: pytest.FixtureRequest, class_case: Case) -> Case:
    """A loss of a class or a distribution, in float64 and float32."""
    return class_case._replace(has_distributions=request.param)


def rounding(dtype: torch.dtype) -> float:
    """Return sixteen machine epsilons: one for each of twelve classes in a sum, and some more."""
    return 16 * torch.finfo(dtype).eps


def test_no_loss_is_negative(case: Case) -> None:
    losses = torch.cat([case.losses_below().losses, case.losses_beyond().losses])
    assert (losses >= 0).all()


@pytest.mark.parametrize("has_distributions", [False, True], ids=["class", "distribution"])
def test_a_loss_a_tenth_below_the_margin_is_positive(
    device: str, alpha: float, has_alphas: bool, has_distributions: bool
) -> None:
    """At alpha 1.1 the loss is about 1e-11. Nearer to the margin, or in float32, it may be 0."""
    case = Case(torch.float64, device, alpha, has_alphas, has_distributions)
    assert case.losses_below().losses[0] > 0


def test_losses_beyond_the_margin_are_small(case: Case) -> None:
    assert (case.losses_beyond().losses <= rounding(case.dtype) / (case.alpha - 1)).all()


def test_losses_of_a_class_far_beyond_the_margin_are_0(class_case: Case) -> None:
    assert not class_case.losses_beyond().losses[FAR].any()


def test_losses_of_a_class_hardly_beyond_the_margin_are_0_in_float64(
    device: str, alpha: float, has_alphas: bool
) -> None:
    losses = Case(torch.float64, device, alpha, has_alphas).losses_beyond().losses
    assert not losses[NEAR].any()


def test_gradients_are_those_of_the_definition(case: Case) -> None:
    # Above alpha 2, a probability is a root of a base that is rounded.
    error = rounding(case.dtype)
    tolerance = error / (case.alpha - 1) if case.alpha <= 2 else error ** (1 / (case.alpha - 1))
    for results in (case.losses_below(), case.losses_beyond()):
        exact = entmax_oracle(results.scores, case.alpha)
        exact[:, 0] -= 1
        assert ((results.gradient - exact).abs() <= tolerance).all()
