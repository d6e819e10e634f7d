"""`entmax_loss` with a class whose score is -inf, as in a search that forbids it.

A row with such a class has the loss and the gradient of the row without it.
"""

import pytest
import torch
from torch import Tensor

from onmt_entmax.sparse import entmax_loss

INF = float("inf")
# A row of three classes, in which class 1 is impossible, and the row without that class.
SCORES = torch.tensor([[0.2, -INF, 0.5]])
POSSIBLE = [0, 2]
WITHOUT = SCORES[:, POSSIBLE]

# Softmax, and three alphas for which rows are solved in different ways.
some_alphas = pytest.mark.parametrize("alpha", [1.0, 1.2, 2.0, 2.5])


def with_zeros(gradient: Tensor) -> Tensor:
    """Return a gradient ``(1, 2)`` for the possible classes as one for all classes, ``(1, 3)``."""
    expected = torch.zeros(1, 3)
    expected[:, POSSIBLE] = gradient
    return expected


def loss_and_gradient(
    scores: Tensor, target: Tensor, alpha: float, **options: object
) -> tuple[Tensor, Tensor]:
    """Return the loss of a row ``(1, classes)``, and its gradient with respect to the scores."""
    leaf = scores.clone().requires_grad_()
    loss = entmax_loss(leaf, target, alpha, **options)
    (gradient,) = torch.autograd.grad(loss, leaf)
    return loss.detach(), gradient


@some_alphas
def test_an_impossible_target_has_an_infinite_loss(alpha: float) -> None:
    assert entmax_loss(SCORES, torch.tensor([1]), alpha) == INF


@some_alphas
def test_an_infinite_loss_does_not_change_the_gradient_of_another_row(alpha: float) -> None:
    scores = torch.cat([SCORES, SCORES]).requires_grad_()
    losses = entmax_loss(scores, torch.tensor([1, 0]), alpha, reduction="none")
    (gradient,) = torch.autograd.grad(losses[1], scores)
    _, alone = loss_and_gradient(WITHOUT, torch.tensor([0]), alpha)
    torch.testing.assert_close(gradient, torch.cat([torch.zeros(1, 3), with_zeros(alone)]))


@some_alphas
def test_a_possible_target_has_the_loss_without_the_impossible_class(alpha: float) -> None:
    loss, gradient = loss_and_gradient(SCORES, torch.tensor([2]), alpha)
    expected, alone = loss_and_gradient(WITHOUT, torch.tensor([1]), alpha)
    torch.testing.assert_close((loss, gradient), (expected, with_zeros(alone)))


@some_alphas
def test_a_distribution_over_possible_classes_has_the_loss_without_the_impossible_class(
    alpha: float,
) -> None:
    distribution = torch.tensor([[0.3, 0.0, 0.7]])
    loss, gradient = loss_and_gradient(SCORES, distribution, alpha)
    expected, alone = loss_and_gradient(WITHOUT, distribution[:, POSSIBLE], alpha)
    torch.testing.assert_close((loss, gradient), (expected, with_zeros(alone)))


@pytest.mark.parametrize("alpha", [1.0, 1.5])
@pytest.mark.parametrize("label", [0, 1], ids=["a possible target", "an impossible target"])
def test_the_weight_0_of_an_impossible_class_removes_it_from_a_smoothed_target(
    label: int, alpha: float
) -> None:
    """Smoothing by 0.3 gives a tenth to each of three classes, and the other 0.7 to the target.

    The weight 0 then takes the probability of the impossible class away, even if it is the target.
    """
    smoothed = torch.full((1, 3), 0.1)
    smoothed[0, label] += 0.7
    loss, gradient = loss_and_gradient(
        SCORES,
        torch.tensor([label]),
        alpha,
        weight=torch.tensor([1.0, 0.0, 1.0]),
        label_smoothing=0.3,
        reduction="sum",
    )
    expected, alone = loss_and_gradient(WITHOUT, smoothed[:, POSSIBLE], alpha, reduction="sum")
    torch.testing.assert_close((loss, gradient), (expected, with_zeros(alone)))
