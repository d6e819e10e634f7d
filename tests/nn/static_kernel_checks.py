"""Trainings with fixed shapes have the same gradients by Triton's kernels as by PyTorch.

test_static_kernels.py runs them in a process of their own: the interpreter must be chosen before
Triton is imported.
"""

from copy import deepcopy

import pytest
import torch

from onmt_entmax.config import ModelConfig
from onmt_entmax.sparse import backends, reference
from onmt_entmax.sparse.backends import triton
from tests.nn.padding import gradients, padded, padded_loss
from tests.nn.small_models import RECURRENT, TRANSFORMER, batch_of, model_of

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
ABOVE_2 = {"global_attention_alpha": 2.5, "generator_alpha": 2.5, "dropout": 0.0}


@pytest.fixture(autouse=True)
def kernels_are_there() -> None:
    """Fail if PyTorch would compute in place of the GPU kernels."""
    assert backends.backend_for(torch.zeros(1, 2, device=DEVICE), 1.5) is triton


@pytest.mark.parametrize(
    ("config", "options"),
    [
        pytest.param(TRANSFORMER, {}, id="transformer, two of whose alphas are learned"),
        pytest.param(RECURRENT, ABOVE_2, id="general"),
        pytest.param(RECURRENT, {"global_attention": "mlp", **ABOVE_2}, id="mlp"),
    ],
)
def test_loss_gradients_in_float32_are_those_in_float64(
    config: ModelConfig, options: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kernels compute the former; on the CPU, the definition of entmax computes the latter.

    They are the gradients of all weights, and of the parameters of learned alphas.
    """
    exact = model_of(config, enc_layers=1, dec_layers=1, **options)
    exact.encoder.fixed_shapes = True  # as on a GPU
    exact.decoder.fixed_shapes = True
    by_kernels = deepcopy(exact).float().to(DEVICE)
    batch = padded(batch_of(3))
    with monkeypatch.context() as patch:
        patch.setattr(backends, "backend_for", lambda *_: reference)
        expected = gradients(padded_loss(exact, batch), exact)
    ours = gradients(padded_loss(by_kernels, batch.to(DEVICE)), by_kernels)
    largest = max(float(gradient.abs().max()) for gradient in expected.values())
    for name, gradient in expected.items():
        difference = float((ours[name].cpu().double() - gradient).abs().max())
        assert difference <= 1e-5 * largest, name
