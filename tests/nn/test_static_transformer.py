"""Transformers on padded batches: equal to unpadded ones, and nothing waits for a GPU."""

from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from onmt_entmax.config import ModelConfig
from onmt_entmax.data.batch import Batch, Example, make_batch
from onmt_entmax.data.shapes import Shape
from onmt_entmax.model import SparseNMTModel, build_model
from onmt_entmax.train.padded import padded_outputs, views
from tests.models import small_transformer
from tests.nn.padding import CONFIG as RECURRENT
from tests.nn.padding import KNOWN, SHAPES, batch_of, gradients, packed_loss, padded

CONFIG = small_transformer(
    transformer_ff=10,
    position_encoding=True,
    encoder_attention_alpha="learned",
    decoder_attention_alpha=1.5,
    context_attention_alpha="learned_shared",
    generator_alpha=1.5,
    param_init=0.4,
    dropout=0.0,
    attention_dropout=0.0,
)
VARIANTS: list[dict[str, Any]] = [
    {},
    {"max_relative_positions": 2, "position_encoding": False},
    {
        "encoder_attention_alpha": 1.0,
        "context_attention_alpha": 2.5,
        "self_attn_type": "average",
        "decoder_attention_alpha": 1.0,
    },
    {"share_decoder_embeddings": True, "generator_alpha": 1.0},
]


def model_of(config: ModelConfig = CONFIG, **options: Any) -> SparseNMTModel:
    torch.manual_seed(1)
    return build_model(replace(config, **options), KNOWN).double().train()


def padded_loss(
    model: SparseNMTModel, batch: tuple[Tensor, Shape], smoothing: float = 0.0
) -> Tensor:
    source, target, lengths = views(*batch)
    outputs = padded_outputs(model, source, target, lengths).flatten(0, 1)
    return model.generator.loss(outputs, target[1:].flatten(), KNOWN.target.pad, smoothing).loss


@pytest.mark.parametrize("options", VARIANTS)
def test_losses_and_gradients_are_those_without_padding(options: dict[str, Any]) -> None:
    model = model_of(**options)
    batch = batch_of(5)  # of seven
    theirs, ours = packed_loss(model, batch, 0.1), padded_loss(model, padded(batch), 0.1)
    torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)
    expected, found = gradients(theirs, model), gradients(ours, model)
    assert found.keys() == expected.keys()
    for name, gradient in expected.items():
        scale = float(gradient.abs().max()) + 1
        assert float((found[name] - gradient).abs().max()) <= 1e-10 * scale, name


def full_batch() -> Batch:
    """A batch that fills its shape."""
    examples = [Example([4 + n] * 8, [5 + n] * 3, n) for n in range(SHAPES.batch_size)]
    return make_batch(examples, KNOWN)


def test_dropout_is_that_without_padding() -> None:
    model = model_of(dropout=0.3, attention_dropout=0.2)
    losses = []
    for loss in (packed_loss, lambda model, batch: padded_loss(model, padded(batch))):
        torch.manual_seed(3)
        losses.append(float(loss(model, full_batch()).detach()))
    model.eval()
    quiet = float(padded_loss(model, padded(full_batch())).detach())
    assert losses[0] == pytest.approx(losses[1], abs=1e-10)
    assert abs(losses[0] - quiet) > 1e-3


class NoSynchronisation(TorchDispatchMode):
    """Refuses shapes that depend on values, and copies between devices.

    Reading a value of a tensor on "meta", which has none, raises an error by itself.
    """

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        made = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        assert name not in ("nonzero", "masked_select", "_unique2"), name
        if name == "index":
            assert all(part is None or part.dtype != torch.bool for part in args[1]), name
        places = {each.device.type for each in (*args, made) if isinstance(each, Tensor)}
        assert len(places) < 2, f"{name} copies between {places}"
        return made


@pytest.mark.parametrize("config", [CONFIG, RECURRENT], ids=["transformer", "recurrent"])
@pytest.mark.parametrize("relative", [0, 2])
def test_an_update_waits_for_no_gpu(
    config: ModelConfig, relative: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the device "meta", which stands in for a GPU that captures."""
    monkeypatch.setattr(torch, "autocast", lambda *_, **__: nullcontext())  # not for "meta"
    # Kernels solve on a GPU.
    monkeypatch.setattr(
        "onmt_entmax.nn.linear_loss.solve",
        lambda scores, alpha, out: (scores.logsumexp(1), out.copy_(scores.softmax(1)).amax(1)),
    )
    changes = {"dropout": 0.1, "attention_dropout": 0.1, "max_relative_positions": relative}
    model = model_of(config, **changes).to("meta")
    batch = padded(batch_of(7))
    batch = batch[0].to("meta"), batch[1]
    with NoSynchronisation():
        loss = padded_loss(model, batch, 0.1)
        found = torch.autograd.grad(loss, list(model.parameters()))
    assert len(found) > 20
