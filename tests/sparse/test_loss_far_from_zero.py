"""`entmax_loss` keeps its digits where all scores are far from 0."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from onmt_entmax.sparse import entmax_loss

# Targets of six rows with seven classes; the third row is ignored.
CLASSES = torch.tensor([0, 1, -100, 3, 6, 2])
DISTRIBUTIONS = torch.linspace(-2, 2, 42).sin().view(6, 7).softmax(1)
targets = pytest.mark.parametrize(
    "target", [CLASSES, DISTRIBUTIONS], ids=["classes", "distributions"]
)

# Added to all scores. Those are multiples of 1 / 256 below 64, so that float32 holds the sums.
OFFSET = 2.0**13


def check_far_scores(
    loss: Callable[..., Tensor], target: Tensor, alpha: float, label_smoothing: float
) -> None:
    """Check that OFFSET changes neither the losses nor their gradient."""
    scores = (torch.randn(6, 7) * 2 * 256).round() / 256

    def losses_and_gradient(offset: float) -> tuple[Tensor, Tensor]:
        leaf = (scores + offset).requires_grad_()
        losses = loss(leaf, target, alpha, reduction="none", label_smoothing=label_smoothing)
        (gradient,) = torch.autograd.grad(losses.sum(), leaf)
        return losses.detach(), gradient

    far, near = losses_and_gradient(OFFSET), losses_and_gradient(0.0)
    torch.testing.assert_close(far, near, rtol=0, atol=1e-6)


@targets
@pytest.mark.parametrize("alpha", [1.0, 1.001, 1.2, 1.33, 1.5, 2.0, 2.5])
def test_scores_far_from_zero_keep_their_digits(target: Tensor, alpha: float) -> None:
    check_far_scores(entmax_loss, target, alpha, label_smoothing=0.0)


# Alphas of three algorithms: compiling takes a second each.
@targets
@pytest.mark.parametrize("alpha", [1.0, 1.33, 2.5])
def test_scores_far_from_zero_keep_their_digits_when_compiled(target: Tensor, alpha: float) -> None:
    torch.compiler.reset()  # PyTorch gives up after eight compilations of a function
    compiled = torch.compile(entmax_loss, backend="aot_eager")
    check_far_scores(compiled, target, alpha, label_smoothing=0.1)
