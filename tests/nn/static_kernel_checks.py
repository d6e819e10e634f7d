"""Checks of the static path's kernels, in Triton's interpreter or on a GPU.

test_static_kernels.py runs them in a process of their own: the interpreter must be chosen before
Triton is imported.
"""

import pytest
import torch

from onmt_entmax.config import ModelConfig
from onmt_entmax.sparse import backends, reference
from onmt_entmax.sparse.backends import triton
from tests.nn.padding import CONFIG as RECURRENT
from tests.nn.padding import batch_of, gradients, padded
from tests.nn.test_static_transformer import CONFIG as TRANSFORMER
from tests.nn.test_static_transformer import model_of, padded_loss

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
ABOVE_2 = {"global_attention_alpha": 2.5, "generator_alpha": 2.5, "dropout": 0.0}


@pytest.fixture(autouse=True)
def kernels_are_there() -> None:
    """Fail where PyTorch would do the kernels' work."""
    assert backends.backend_for(torch.zeros(1, 2, device=DEVICE), 1.5) is triton


@pytest.mark.parametrize(
    ("config", "options"),
    [
        (TRANSFORMER, {}),
        (RECURRENT, ABOVE_2),
        (RECURRENT, {"global_attention": "mlp", **ABOVE_2}),
    ],
    ids=["transformer", "general", "mlp"],
)
def test_an_update(
    config: ModelConfig, options: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loss and all gradients in float32, of learned and fixed alphas, beside float64 on the CPU."""
    model = model_of(config, enc_layers=1, dec_layers=1, **options)  # in float64
    model.encoder.fixed_shapes = True  # as on a GPU
    model.decoder.fixed_shapes = True
    tokens, shape = padded(batch_of(3))
    with monkeypatch.context() as patch:
        patch.setattr(backends, "backend_for", lambda *_: reference)
        expected = gradients(padded_loss(model, (tokens, shape)), model)
    model = model.float().to(DEVICE)
    ours = gradients(padded_loss(model, (tokens.to(DEVICE), shape)), model)
    largest = max(float(gradient.abs().max()) for gradient in expected.values())
    for name, gradient in expected.items():
        difference = float((ours[name].cpu().double() - gradient).abs().max())
        assert difference <= 1e-5 * largest, name
