"""The check of the loss of a GPU, tried on a CPU: a wrong value, gradient or support is found."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from onmt_entmax.nn.output import OutputLayer, OutputLoss
from tools.bench.gpu_device import Device
from tools.bench.gpu_loss_checks import PAD, compare_losses

WIDTH, CLASSES = 4, 12  # of the output layer
TARGETS = [0, PAD, 2, 3, 4, 5]


def loss_is_right() -> bool:
    """Return whether the loss of a random layer, computed on the CPU in float32, is right."""
    torch.manual_seed(0)
    layer = OutputLayer(WIDTH, CLASSES, 1.5)
    states, target = torch.randn(len(TARGETS), WIDTH), torch.tensor(TARGETS)
    return bool(compare_losses(Device("cpu"), layer, states, target)["ok"])


def test_the_loss_of_the_cpu_is_right() -> None:
    assert loss_is_right()


def with_wrong_value(loss: OutputLoss) -> OutputLoss:
    """Return a loss that is 1 % too large, with the right gradients."""
    return loss._replace(loss=loss.loss + 0.01 * loss.loss.detach())


def with_wrong_gradients(loss: OutputLoss) -> OutputLoss:
    """Return a loss of the right value, whose gradients are 1 % too large."""
    return loss._replace(loss=1.01 * loss.loss - 0.01 * loss.loss.detach())


def with_wrong_support(loss: OutputLoss) -> OutputLoss:
    """Return a right loss, and a support that is too large by one token."""
    return loss._replace(support=loss.support + 1)


@pytest.mark.parametrize("damaged", [with_wrong_value, with_wrong_gradients, with_wrong_support])
def test_a_wrong_result_is_found(
    monkeypatch: pytest.MonkeyPatch, damaged: Callable[[OutputLoss], OutputLoss]
) -> None:
    """It is wrong in float32 alone, as a kernel could be; the check compares it with float64."""
    right = OutputLayer.loss

    def wrong(layer: OutputLayer, hidden: torch.Tensor, *arguments: Any) -> OutputLoss:
        loss = right(layer, hidden, *arguments)
        return damaged(loss) if hidden.dtype == torch.float32 else loss

    monkeypatch.setattr(OutputLayer, "loss", wrong)
    assert not loss_is_right()
