"""The loss at the margin: it is 0 once the target's score is 1 / (alpha - 1) above every other.

Of classes and of distributions, with a number as alpha and with one for each row.
"""

from itertools import product
from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from onmt_entmax.sparse import entmax_loss
from tests.oracles import entmax_oracle

CLASSES = 12
SHARES = torch.logspace(-1, -6, 40, dtype=torch.float64)
LESS, MORE = slice(0, len(SHARES)), slice(len(SHARES), 2 * len(SHARES))
# Of the rows beyond the margin: by a share of 0.1 to about 0.007, and of less than 3e-6, which in
# float32 is about a rounding of the scores.
FAR_BEYOND = slice(MORE.start, MORE.start + 10)
HARDLY_BEYOND = slice(MORE.stop - 4, MORE.stop)


def rows_around_the_margin(alpha: float) -> Tensor:
    """Return scores ``(80, 12)`` whose first one leads by the margin, but for a share of it.

    It leads by less in the rows LESS, and by more in the rows MORE: first by a tenth of the margin,
    then by smaller and smaller SHARES.
    """
    lead = torch.cat([1 - SHARES, 1 + SHARES]) / (alpha - 1)
    scores = torch.rand(len(lead), CLASSES, dtype=torch.float64) * -3
    scores[:, 0] = scores[:, 1:].amax(1) + lead
    return scores


class Outcome(NamedTuple):
    """Losses of rows around the margin, with the first class as the target."""

    kind: str
    """Whether the target is given as classes or as distributions."""
    losses: Tensor
    gradient: Tensor


@pytest.fixture(params=[torch.float64, torch.float32])
def dtype(request: pytest.FixtureRequest) -> torch.dtype:
    value: torch.dtype = request.param
    return value


@pytest.fixture(params=[1.1, 1.2, 1.5, 2.0, 2.5])
def alpha(request: pytest.FixtureRequest) -> float:
    value: float = request.param
    return value


@pytest.fixture
def scores(alpha: float, dtype: torch.dtype, device: str) -> Tensor:
    return rows_around_the_margin(alpha).to(device, dtype).requires_grad_()


@pytest.fixture
def target(scores: Tensor) -> Tensor:
    """The first class, as distributions ``(80, 12)``."""
    return torch.eye(CLASSES, dtype=scores.dtype, device=scores.device)[:1].expand_as(scores)


@pytest.fixture
def outcomes(scores: Tensor, target: Tensor, alpha: float) -> list[Outcome]:
    alphas = torch.full((len(scores), 1), alpha, device=scores.device, dtype=torch.float64)
    outcomes = []
    for kind, form in product(("classes", "distributions"), (alpha, alphas)):
        targets = target.argmax(1) if kind == "classes" else target
        losses = entmax_loss(scores, targets, form, reduction="none")
        (gradient,) = torch.autograd.grad(losses.sum(), scores)
        outcomes.append(Outcome(kind, losses.detach(), gradient))
    return outcomes


@pytest.fixture
def of_classes(outcomes: list[Outcome]) -> list[Outcome]:
    return [outcome for outcome in outcomes if outcome.kind == "classes"]


@pytest.fixture
def rounding(dtype: torch.dtype) -> float:
    """About ten roundings of a number near 1."""
    return 16 * torch.finfo(dtype).eps


def test_no_loss_is_negative(outcomes: list[Outcome]) -> None:
    for outcome in outcomes:
        assert (outcome.losses >= 0).all()


def test_losses_beyond_the_margin_are_small(
    outcomes: list[Outcome], alpha: float, rounding: float
) -> None:
    for outcome in outcomes:
        assert (outcome.losses[MORE] <= rounding / (alpha - 1)).all()


def test_losses_of_a_class_far_beyond_the_margin_are_0(of_classes: list[Outcome]) -> None:
    for outcome in of_classes:
        assert not outcome.losses[FAR_BEYOND].any()


@pytest.mark.parametrize("dtype", [torch.float64], indirect=True)
def test_losses_of_a_class_hardly_beyond_the_margin_are_0(of_classes: list[Outcome]) -> None:
    for outcome in of_classes:
        assert not outcome.losses[HARDLY_BEYOND].any()


def test_gradients_are_those_of_the_definition(
    outcomes: list[Outcome], scores: Tensor, target: Tensor, alpha: float, rounding: float
) -> None:
    exact = entmax_oracle(scores, alpha) - target
    # Above alpha 2, a probability is a root of a base that is rounded.
    tolerance = rounding / (alpha - 1) if alpha <= 2 else rounding ** (1 / (alpha - 1))
    for outcome in outcomes:
        assert ((outcome.gradient - exact).abs() <= tolerance).all()
