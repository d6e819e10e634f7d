"""Checks of the static path's kernels, in Triton's interpreter or on a GPU.

test_static_kernels.py runs them in a process of their own: the interpreter must be chosen before
Triton is imported.
"""

import pytest
import torch

from onmt_entmax.config import ModelConfig
from onmt_entmax.sparse import backends, reference
from onmt_entmax.sparse.backends import triton
from tests.nn.test_static import CONFIG as RECURRENT
from tests.nn.test_static import batch_of, gradients, padded
from tests.nn.test_static_transformer import CONFIG, model_of, padded_loss

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
ALPHAS = (1.0, 1.05, 1.2, 1.33, 1.5, 2.0)


@pytest.fixture(autouse=True)
def kernels_are_there() -> None:
    torch.manual_seed(0)
    assert backends.of(torch.zeros(1, 2, device=DEVICE), 1.5) is triton


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows count as long from 65 scores on, in tiles of 128, with lists of 32 candidates."""
    monkeypatch.setattr(triton, "_REGISTERS", 64 * 4)
    monkeypatch.setattr(triton, "_TILE", 128 * 4)
    monkeypatch.setattr(triton, "_ROOM", 32)
    monkeypatch.setattr(triton, "short_rows", triton.short_rows.__wrapped__)  # without its cache


ABOVE_2 = {"global_attention_alpha": 2.5, "generator_alpha": 2.5, "dropout": 0.0}


@pytest.mark.parametrize(
    ("config", "options"),
    [(CONFIG, {}), (RECURRENT, ABOVE_2), (RECURRENT, {"global_attention": "mlp", **ABOVE_2})],
    ids=["transformer", "general", "mlp"],
)
def test_an_update(
    config: ModelConfig, options: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loss and all gradients in float32, of learned and fixed alphas, beside float64 on the CPU."""
    model, batch = model_of(config, enc_layers=1, dec_layers=1, **options), padded(batch_of(3))
    for part in (model.encoder, model.decoder):  # as on a GPU
        part.fixed_shapes = True
    with monkeypatch.context() as patch:
        patch.setattr(backends, "of", lambda *_: reference)
        expected = gradients(padded_loss(model, batch), model)
    model, batch = model.float().to(DEVICE), (batch[0].to(DEVICE), batch[1])
    found = gradients(padded_loss(model, batch), model)
    largest = max(float(gradient.abs().max()) for gradient in expected.values())
    for name, gradient in expected.items():
        difference = float((found[name].cpu().double() - gradient).abs().max())
        assert difference <= 1e-5 * largest, name
