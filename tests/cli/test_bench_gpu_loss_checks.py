"""The check of the loss of a GPU, tried on a CPU: wrong gradients and a wrong support are found."""

from collections.abc import Callable

import pytest
import torch

from onmt_entmax.nn.output import OutputLayer, OutputLoss
from tools.bench.gpu_device import Device
from tools.bench.gpu_loss_checks import PAD, compare_losses

CLASSES = 12


def is_ok() -> bool:
    """Return whether the loss of a random layer, computed on the CPU in float32, is right."""
    torch.manual_seed(0)
    layer = OutputLayer(4, CLASSES, 1.5)
    states, target = torch.randn(6, 4), torch.tensor([0, PAD, 2, 3, 4, 5])
    return bool(compare_losses(Device("cpu"), layer, states, target)["ok"])


def test_the_loss_of_the_cpu_is_right() -> None:
    assert is_ok()


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda loss: loss._replace(loss=1.01 * loss.loss), id="loss"),
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
    assert not is_ok()
