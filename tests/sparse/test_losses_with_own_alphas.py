"""Rows of one call, each with its alpha, have the losses and gradients that they have alone."""

import pytest
import torch
from torch import Tensor

from onmt_entmax.sparse import entmax_loss

ALPHAS = (1.0, 1.2, 1.5, 2.0, 2.5, 20.0) * 3  # of the rows, on both sides of 2
ROWS, CLASSES = len(ALPHAS), 30


@pytest.fixture
def alpha(device: str) -> Tensor:
    """The alphas ``(ROWS, 1)``."""
    return torch.tensor(ALPHAS, dtype=torch.float64, device=device)[:, None].requires_grad_()


@pytest.fixture
def scores(alpha: Tensor) -> Tensor:
    """Scores ``(ROWS, CLASSES)``, closer where alpha is larger, so that no support is tiny."""
    scores = torch.randn(ROWS, CLASSES, dtype=torch.float64, device=alpha.device) / alpha.detach()
    return scores.requires_grad_()


@pytest.fixture
def index(device: str) -> Tensor:
    """A class for each row."""
    return torch.arange(ROWS, device=device)


def losses_alone(scores: Tensor, index: Tensor) -> Tensor:
    """Return losses ``(ROWS,)``, each by a call for its row, with a number for alpha."""
    rows = zip(scores, index, ALPHAS, strict=True)
    return torch.stack([entmax_loss(row, target, alpha) for row, target, alpha in rows])


def test_a_row_has_the_loss_that_it_has_alone(scores: Tensor, index: Tensor, alpha: Tensor) -> None:
    losses = entmax_loss(scores, index, alpha, reduction="none")
    # The solvers for a number and for a tensor differ in their last digits.
    torch.testing.assert_close(losses, losses_alone(scores, index), rtol=1e-9, atol=1e-12)


def test_a_row_has_the_gradient_that_it_has_alone(
    scores: Tensor, index: Tensor, alpha: Tensor
) -> None:
    (gradient,) = torch.autograd.grad(entmax_loss(scores, index, alpha, reduction="sum"), scores)
    (expected,) = torch.autograd.grad(losses_alone(scores, index).sum(), scores)
    torch.testing.assert_close(gradient, expected, rtol=1e-6, atol=1e-9)


def test_an_alpha_has_the_gradient_that_it_has_alone(
    scores: Tensor, index: Tensor, alpha: Tensor
) -> None:
    (gradient,) = torch.autograd.grad(entmax_loss(scores, index, alpha, reduction="sum"), alpha)
    rows = zip(scores, index, alpha, strict=True)
    alone = torch.stack([entmax_loss(row, target, own) for row, target, own in rows])
    (expected,) = torch.autograd.grad(alone.sum(), alpha)
    torch.testing.assert_close(gradient, expected, rtol=1e-6, atol=1e-9)
