"""Rows that `entmax_loss` ignores have no effect, whatever their scores are."""

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor

from onmt_entmax.sparse import entmax_loss

INF = float("inf")
IGNORED = -100  # the default of `ignore_index`
TARGET = torch.tensor([2, IGNORED, IGNORED])
# Label smoothing reads the scores of all classes: that of -inf in row 1, and in row 2 scores whose
# differences overflow float32.
SCORES = torch.tensor([[0.3, -0.2, 0.1], [0.5, -INF, 0.2], [1e38, -3e38, 2e38]])
WEIGHT = torch.tensor([1.0, 2.0, 0.5])


def compiled_loss(*arguments: Any, **options: Any) -> Tensor:
    """Compute `entmax_loss` by a compiled graph, which takes half a second."""
    torch.compiler.reset()  # PyTorch gives up after eight compilations of a function
    losses: Tensor = torch.compile(entmax_loss, backend="aot_eager")(*arguments, **options)
    return losses


class SmoothedLoss(NamedTuple):
    """A loss with label smoothing.

    Attributes:
        function: `entmax_loss`, or a compiled form of it.
        alpha: alpha of all rows.
        weight: weights of the classes ``(3,)``, or None.
    """

    function: Callable[..., Tensor]
    alpha: float
    weight: Tensor | None

    def __call__(self, scores: Tensor, target: Tensor, reduction: str) -> Tensor:
        """Return the loss of scores ``(rows, 3)``."""
        return self.function(
            scores, target, self.alpha, self.weight, reduction=reduction, label_smoothing=0.1
        )


each_loss = pytest.mark.parametrize(
    "loss",
    [
        pytest.param(SmoothedLoss(entmax_loss, 1.0, None), id="softmax"),
        pytest.param(SmoothedLoss(entmax_loss, 1.5, None), id="1.5"),
        pytest.param(SmoothedLoss(entmax_loss, 2.5, None), id="2.5"),
        pytest.param(SmoothedLoss(compiled_loss, 1.0, WEIGHT), id="softmax, weights, compiled"),
        pytest.param(SmoothedLoss(compiled_loss, 2.5, WEIGHT), id="2.5, weights, compiled"),
    ],
)


@each_loss
def test_an_ignored_row_has_a_loss_of_0(loss: SmoothedLoss) -> None:
    losses = loss(SCORES, TARGET, "none")
    assert losses[1:].tolist() == [0, 0]


@each_loss
def test_an_ignored_row_has_a_gradient_of_0(loss: SmoothedLoss) -> None:
    scores = SCORES.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(loss(scores, TARGET, "mean"), scores)
    assert gradient[1:].tolist() == [[0, 0, 0], [0, 0, 0]]


@each_loss
def test_ignored_rows_do_not_change_the_mean_of_the_others(loss: SmoothedLoss) -> None:
    mean = loss(SCORES, TARGET, "mean")
    torch.testing.assert_close(mean, loss(SCORES[:1], TARGET[:1], "mean"))


@each_loss
def test_ignored_rows_do_not_change_the_gradient_of_the_others(loss: SmoothedLoss) -> None:
    scores, alone = SCORES.clone().requires_grad_(), SCORES[:1].clone().requires_grad_()
    (gradient,) = torch.autograd.grad(loss(scores, TARGET, "mean"), scores)
    (expected,) = torch.autograd.grad(loss(alone, TARGET[:1], "mean"), alone)
    torch.testing.assert_close(gradient[:1], expected)
