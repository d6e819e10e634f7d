"""Gradients of `entmax_loss` with respect to scores, alpha and target, by finite differences.

All comparisons are PyTorch's gradcheck and gradgradcheck, with their default tolerances.
"""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from onmt_entmax.sparse import entmax_loss
from tests.sparse.loss_cases import INDEX, KINDS, OPTIONS, random_scores, target_of

kinds = pytest.mark.parametrize("kind", KINDS)
# Each alpha has two of the four sets of options, whose effect does not depend on alpha.
alphas_and_options = pytest.mark.parametrize(
    ("alpha", "options"),
    [
        (1.0, "plain"),
        (1.0, "weights and smoothing"),
        (1.001, "weights"),
        (1.001, "plain"),
        (1.2, "smoothing"),
        (1.2, "weights"),
        (1.33, "weights and smoothing"),
        (1.33, "smoothing"),
        (1.5, "plain"),
        (1.5, "weights and smoothing"),
        (2.0, "weights"),
        (2.0, "plain"),
        (2.5, "smoothing"),
        (2.5, "weights"),
    ],
)
some_alphas = pytest.mark.parametrize("number", [1.001, 1.3, 2.3])


@kinds
@alphas_and_options
def test_gradients_equal_finite_differences(alpha: float, kind: str, options: str) -> None:
    target = target_of(kind)

    def loss(scores: Tensor) -> Tensor:
        return entmax_loss(scores, target, alpha, **OPTIONS[options])

    assert gradcheck(loss, random_scores(6, 7))


@pytest.mark.parametrize("alpha", [1.0, 1.001, 1.5, 2.0, 2.5])
@kinds
def test_second_derivatives_equal_finite_differences(alpha: float, kind: str) -> None:
    target = target_of(kind)

    def losses(scores: Tensor) -> Tensor:
        return entmax_loss(scores, target, alpha, reduction="none")

    assert gradgradcheck(losses, random_scores(6, 7))


@some_alphas
@pytest.mark.parametrize("check", [gradcheck, gradgradcheck], ids=["first", "second"])
def test_gradients_with_respect_to_alpha_equal_finite_differences(
    number: float, check: Callable[..., bool]
) -> None:
    scores = random_scores(6, 7)
    alpha = torch.tensor([[number]], dtype=torch.float64, requires_grad=True)
    assert check(lambda scores, alpha: entmax_loss(scores, INDEX, alpha), (scores, alpha))


@some_alphas
def test_gradients_with_respect_to_alphas_and_target_equal_finite_differences(
    number: float,
) -> None:
    scores, target = random_scores(6, 7), target_of("distributions").requires_grad_()
    alphas = (number + 0.1 * torch.rand(6, 1, dtype=torch.float64)).requires_grad_()

    def loss(scores: Tensor, target: Tensor, alphas: Tensor) -> Tensor:
        return entmax_loss(scores, target, alphas)

    assert gradcheck(loss, (scores, target, alphas))
