"""The check of the loss of a GPU, tried on a CPU: a wrong value, gradient or support is found."""

from collections.abc import Callable

import pytest
import torch

from onmt_entmax.nn.output import OutputLayer, OutputLoss
from tools.bench.gpu_device import Device
from tools.bench.gpu_loss_checks import PAD, compare_losses

WIDTH, CLASSES = 4, 12
TARGETS = [0, PAD, 2, 3, 4, 5]


def loss_is_right() -> bool:
    """Return whether the loss of a random layer, computed on the CPU in float32, is right."""
    torch.manual_seed(0)
    layer = OutputLayer(WIDTH, CLASSES, 1.5)
    states, target = torch.randn(len(TARGETS), WIDTH), torch.tensor(TARGETS)
    return bool(compare_losses(Device("cpu"), layer, states, target)["ok"])


def test_the_loss_of_the_cpu_is_right() -> None:
    assert loss_is_right()


def larger(loss: OutputLoss) -> OutputLoss:
    """Return a loss whose value alone is wrong."""
    return loss._replace(loss=loss.loss + 0.01 * loss.loss.detach())


def steeper(loss: OutputLoss) -> OutputLoss:
    """Return a loss whose gradients alone are wrong."""
    return loss._replace(loss=1.01 * loss.loss - 0.01 * loss.loss.detach())


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(larger, id="loss"),
        pytest.param(steeper, id="gradients"),
        pytest.param(lambda loss: loss._replace(support=loss.support + 1), id="support"),
    ],
)
def test_a_wrong_result_is_found(
    monkeypatch: pytest.MonkeyPatch, damage: Callable[[OutputLoss], OutputLoss]
) -> None:
    """It is wrong in float32 alone, as a kernel could be."""
    right = OutputLayer.loss

    def wrong(layer: OutputLayer, hidden: torch.Tensor, *arguments: object) -> OutputLoss:
        loss = right(layer, hidden, *arguments)  # type: ignore[arg-type]
        return damage(loss) if hidden.dtype == torch.float32 else loss

    monkeypatch.setattr(OutputLayer, "loss", wrong)
    assert not loss_is_right()
