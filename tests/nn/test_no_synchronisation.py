"""An update on padded batches never waits for a GPU: nothing reads values back from it."""

from contextlib import nullcontext
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from onmt_entmax.config import ModelConfig
from tests.nn.padding import SHAPES, padded, padded_loss
from tests.nn.small_models import RECURRENT, TRANSFORMER, batch_of, model_of


class NoSynchronisation(TorchDispatchMode):
    """Refuses shapes that depend on values, and copies between devices.

    Reading a value of a tensor on "meta", which has none, raises an error by itself.
    """

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        assert name not in ("nonzero", "masked_select", "_unique2"), name
        if name == "index":
            assert all(part is None or part.dtype != torch.bool for part in args[1]), name
        tensors = [value for value in (*args, result) if isinstance(value, Tensor)]
        devices = {tensor.device.type for tensor in tensors}
        assert len(devices) < 2, f"{name} copies between {devices}"
        return result


def softmax_in_place(scores: Tensor, alpha: float, out: Tensor) -> tuple[Tensor, Tensor]:
    """Replace `backends.solve`, which has no kernels for "meta"; results have the same shapes."""
    out.copy_(scores.softmax(1))
    return scores.logsumexp(1), out.amax(1)


@pytest.mark.parametrize(
    ("config", "relative_positions"),
    [
        pytest.param(TRANSFORMER, 0, id="transformer"),
        pytest.param(TRANSFORMER, 2, id="transformer with relative positions"),
        pytest.param(RECURRENT, 0, id="recurrent"),
    ],
)
def test_an_update_waits_for_no_gpu(
    config: ModelConfig, relative_positions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The device "meta" stands in for a GPU; it has shapes, and no values to read."""
    monkeypatch.setattr(torch, "autocast", lambda *_, **__: nullcontext())  # not for "meta"
    monkeypatch.setattr("onmt_entmax.nn.linear_loss.solve", softmax_in_place)
    model = model_of(
        config, dropout=0.1, attention_dropout=0.1, max_relative_positions=relative_positions
    ).to("meta")
    batch = padded(batch_of(SHAPES.batch_size)).to("meta")
    with NoSynchronisation():
        loss = padded_loss(model, batch, smoothing=0.1)
        torch.autograd.grad(loss, list(model.parameters()))
