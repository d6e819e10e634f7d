"""Transformers on padded batches: equal to unpadded ones, and nothing waits for a GPU."""

from contextlib import nullcontext
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from onmt_entmax.config import ModelConfig
from onmt_entmax.data.batch import Batch, Example, make_batch
from onmt_entmax.model import SparseNMTModel
from tests.nn.padding import (
    RECURRENT,
    SHAPES,
    TRANSFORMER,
    VOCABULARIES,
    batch_of,
    gradients,
    model_of,
    packed_loss,
    padded,
    padded_loss,
)

VARIANTS: dict[str, dict[str, Any]] = {
    "learned alphas": {},
    "relative positions": {"max_relative_positions": 2, "position_encoding": False},
    "average attention, softmax, an alpha above 2": {
        "encoder_attention_alpha": 1.0,
        "context_attention_alpha": 2.5,
        "self_attn_type": "average",
        "decoder_attention_alpha": 1.0,
    },
    "tied weights and softmax": {"share_decoder_embeddings": True, "generator_alpha": 1.0},
}


SMOOTHING = 0.1


@pytest.mark.parametrize("options", VARIANTS.values(), ids=list(VARIANTS))
class TestABatchThatDoesNotFillItsShape:
    @pytest.fixture
    def model(self, options: dict[str, Any]) -> SparseNMTModel:
        return model_of(TRANSFORMER, **options)

    @pytest.fixture
    def losses(self, model: SparseNMTModel) -> tuple[Tensor, Tensor]:
        """The loss of a batch with padding, and without."""
        batch = batch_of(SHAPES.batch_size - 2)
        ours = padded_loss(model, padded(batch), SMOOTHING)
        return ours, packed_loss(model, batch, SMOOTHING)

    def test_has_the_loss_without_padding(self, losses: tuple[Tensor, Tensor]) -> None:
        torch.testing.assert_close(*losses, rtol=1e-10, atol=1e-10)

    def test_has_the_gradients_without_padding(
        self, model: SparseNMTModel, losses: tuple[Tensor, Tensor]
    ) -> None:
        ours, expected = (gradients(loss, model) for loss in losses)
        assert ours.keys() == expected.keys()
        for name, gradient in expected.items():
            scale = float(gradient.abs().max()) + 1
            assert float((ours[name] - gradient).abs().max()) <= 1e-10 * scale, name


class TestDropout:
    """A batch that fills its shape gets equal masks from equal seeds, with and without padding."""

    @pytest.fixture
    def model(self) -> SparseNMTModel:
        return model_of(TRANSFORMER, dropout=0.3, attention_dropout=0.2)

    @pytest.fixture
    def batch(self) -> Batch:
        examples = [Example([4 + n] * 8, [5 + n] * 3, n) for n in range(SHAPES.batch_size)]
        return make_batch(examples, VOCABULARIES)

    @pytest.fixture
    def loss(self, model: SparseNMTModel, batch: Batch) -> float:
        torch.manual_seed(3)
        return float(padded_loss(model, padded(batch)).detach())

    def test_is_that_without_padding(
        self, model: SparseNMTModel, batch: Batch, loss: float
    ) -> None:
        torch.manual_seed(3)
        assert float(packed_loss(model, batch).detach()) == pytest.approx(loss, abs=1e-10)

    def test_changes_the_loss(self, model: SparseNMTModel, batch: Batch, loss: float) -> None:
        of_evaluation = float(padded_loss(model.eval(), padded(batch)).detach())
        assert abs(loss - of_evaluation) > 1e-3


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
    """Stand in for `backends.solve`, which kernels do on a GPU, with results of its shapes."""
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
    """The device "meta" stands in for a GPU that captures: there, `NoSynchronisation` fails."""
    monkeypatch.setattr(torch, "autocast", lambda *_, **__: nullcontext())  # not for "meta"
    monkeypatch.setattr("onmt_entmax.nn.linear_loss.solve", softmax_in_place)
    model = model_of(
        config, dropout=0.1, attention_dropout=0.1, max_relative_positions=relative_positions
    ).to("meta")
    tokens, shape = padded(batch_of(SHAPES.batch_size))
    batch = tokens.to("meta"), shape
    with NoSynchronisation():
        loss = padded_loss(model, batch, SMOOTHING)
        torch.autograd.grad(loss, list(model.parameters()))
