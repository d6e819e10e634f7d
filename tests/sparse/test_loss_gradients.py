"""Gradients of `entmax_loss` in the scores, in alpha and in the target."""

from collections.abc import Callable
from itertools import cycle

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from onmt_entmax.sparse import entmax_loss
from tests.sparse.loss_cases import ALPHAS, INDEX, KINDS, OPTIONS, random_scores, target_of

kinds = pytest.mark.parametrize("kind", KINDS)
# Each alpha with two of the four sets of options.
alphas_and_options = pytest.mark.parametrize(
    ("alpha", "options"),
    [
        pytest.param(alpha, options, id=f"{alpha}, {name}")
        for alpha, (name, options) in zip(ALPHAS * 2, cycle(OPTIONS.items()), strict=False)
    ],
)
some_alphas = pytest.mark.parametrize("number", [1.001, 1.3, 2.3])


@kinds
@alphas_and_options
def test_gradients_are_difference_quotients(alpha: float, kind: str, options: dict) -> None:
    target = target_of(kind)
    assert gradcheck(lambda z: entmax_loss(z, target, alpha, **options), random_scores(6, 7))


@pytest.mark.parametrize("alpha", [1.0, 1.001, 1.5, 2.0, 2.5])
@kinds
def test_second_gradients_are_difference_quotients_of_the_first(alpha: float, kind: str) -> None:
    target = target_of(kind)
    assert gradgradcheck(
        lambda z: entmax_loss(z, target, alpha, reduction="none"), random_scores(6, 7)
    )


@some_alphas
@pytest.mark.parametrize("check", [gradcheck, gradgradcheck], ids=["first", "second"])
def test_gradients_in_alpha_are_difference_quotients(
    number: float, check: Callable[..., bool]
) -> None:
    scores = random_scores(6, 7)
    alpha = torch.tensor([[number]], dtype=torch.float64, requires_grad=True)
    assert check(lambda z, a: entmax_loss(z, INDEX, a), (scores, alpha))


@some_alphas
def test_gradients_in_alphas_of_rows_and_in_the_target_are_difference_quotients(
    number: float,
) -> None:
    scores, target = random_scores(6, 7), target_of("distributions").requires_grad_()
    alphas = (number + 0.1 * torch.rand(6, 1, dtype=torch.float64)).requires_grad_()
    assert gradcheck(lambda z, a, t: entmax_loss(z, t, a), (scores, alphas, target))
