"""Scores, targets and options for the tests of `entmax_loss`: six rows of seven classes."""

import torch
from torch import Tensor

ALPHAS = (1.0, 1.001, 1.2, 1.33, 1.5, 2.0, 2.5)  # between and beside those with closed forms
KINDS = ("classes", "distributions")  # of targets
INDEX = torch.tensor([0, 1, -100, 3, 6, 2])  # one row is ignored
WEIGHT = torch.tensor([0.5, 1.0, 0.0, 2.0, 0.3, 1.5, 0.7], dtype=torch.float64)
OPTIONS: dict[str, dict[str, object]] = {
    "plain": {},
    "weights": {"weight": WEIGHT},
    "smoothing": {"label_smoothing": 0.1},
    "weights and smoothing": {"weight": WEIGHT, "label_smoothing": 0.3},
}


def random_scores(*shape: int) -> Tensor:
    """Return scores in float64 that require a gradient."""
    return (torch.randn(*shape, dtype=torch.float64) * 2).requires_grad_()


def assert_equal_losses_and_gradients(ours: Tensor, theirs: Tensor, scores: Tensor) -> None:
    """Check that two losses of the same scores, and their gradients, are equal in float64."""
    # Thousands of machine epsilons of float64, far below any wrong formula.
    torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)
    gradients = [torch.autograd.grad(loss.sum(), scores)[0] for loss in (ours, theirs)]
    torch.testing.assert_close(*gradients, rtol=1e-12, atol=1e-12)


def target_of(kind: str) -> Tensor:
    """Return classes ``(6,)`` or random distributions ``(6, 7)``.

    Args:
        kind: one of `KINDS`.
    """
    if kind == "classes":
        return INDEX
    return torch.rand(6, 7, dtype=torch.float64).softmax(1)
