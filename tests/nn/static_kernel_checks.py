"""Checks of the static path's kernels, in Triton's interpreter or on a GPU.

test_static_kernels.py runs them in a process of their own: the interpreter must be chosen before
Triton is imported.
"""

from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from onmt_entmax.network import ModelConfig
from onmt_entmax.nn.lstm import static_steps, static_triton
from onmt_entmax.sparse import backends
from onmt_entmax.sparse.backends import triton
from tests.nn.test_static import CONFIG as RECURRENT
from tests.nn.test_static import batch_of, gradients, padded
from tests.nn.test_static_transformer import CONFIG, model_of, padded_loss

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
ALPHAS = (1.0, 1.05, 1.2, 1.33, 1.5, 2.0)


@pytest.fixture(autouse=True)
def kernels_are_there() -> Iterator[None]:
    torch.manual_seed(0)
    assert backends.has_kernels(torch.zeros(1, 2, device=DEVICE))
    yield
    assert not triton.failures


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows count as long from 65 scores on, in tiles of 128, with lists of 32 candidates."""
    monkeypatch.setattr(triton, "_REGISTERS", 64 * 4)
    monkeypatch.setattr(triton, "_TILE", 128 * 4)
    monkeypatch.setattr(triton, "_ROOM", 32)
    monkeypatch.setattr(triton, "short_rows", triton.short_rows.__wrapped__)  # without its cache


@pytest.mark.parametrize("alpha", [1.0, 1.33, 1.5, 2.0])
@pytest.mark.parametrize("source", [5, 40])
@pytest.mark.parametrize("dropout", [False, True])
def test_attention(alpha: float, source: int, dropout: bool) -> None:
    """Outputs and all gradients equal those of the same class without kernels."""
    rows, hidden, steps = 3, 20, 2
    bank = torch.randn(rows, source, hidden, device=DEVICE)
    lengths = torch.tensor([source, 1, source // 2 + 1], device=DEVICE)
    weights = {
        "linear_in.weight": torch.randn(hidden, hidden, device=DEVICE) * 0.2,
        "linear_out.weight": torch.randn(hidden, 2 * hidden, device=DEVICE) * 0.2,
    }
    factors = None
    if dropout:
        factors = (torch.rand(steps, rows, hidden, device=DEVICE) < 0.7).float() / 0.7
    queries = torch.randn(steps, rows, hidden, device=DEVICE)
    grad_fed = torch.randn(rows, 2 * hidden, device=DEVICE)[:, :hidden]
    grad = torch.randn(steps, rows, hidden, device=DEVICE)
    results = []
    for kernels in (True, False):
        attention = static_steps.DotAttention(bank, lengths, alpha, weights, steps, factors)
        assert attention._kernels is not None
        if not kernels:
            attention._kernels = None
        fed = torch.empty(rows, 2 * hidden, device=DEVICE)[:, hidden:]
        for step in range(steps):
            attention.queries(step).copy_(queries[step])
            attention.forward(step, fed)
        made = [attention.outputs.clone(), fed.clone()]
        attention.start_backward(grad)
        for step in reversed(range(steps)):
            back = torch.empty(rows, hidden, device=DEVICE)
            attention.backward(step, grad_fed, back)
            made.append(back)
        more, by_name = attention.finish_backward()
        results.append([*made, more, *by_name.values()])
    for found, expected in zip(*results, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("directions", [1, 2])
def test_cells(directions: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Forward and backward of masked encoder cells and of decoder cells."""
    rows, hidden = 3, 7

    def draw(*sizes: int) -> Tensor:
        return torch.randn(sizes, device=DEVICE)

    gates, cell, state = draw(2, directions, rows, 4 * hidden), draw(directions, rows, hidden), None
    live = second = factors = None
    if directions == 2:
        live, state = torch.tensor([[1.0, 0, 1], [0, 1, 1]], device=DEVICE), draw(2, rows, hidden)
    else:
        factors = draw(rows, hidden).relu()
    grads = (
        draw(directions, rows, hidden),
        draw(directions, rows, hidden),
        draw(directions, rows, hidden),
    )
    results = []
    for kernels in (True, False):
        if not kernels:
            monkeypatch.setattr(static_steps, "_kernels_for", lambda like: None)
        now = gates[0].clone()
        after, wide = (
            torch.zeros_like(cell),
            torch.zeros(directions, rows, 2 * hidden, device=DEVICE),
        )
        if directions == 1:
            second = torch.zeros(1, rows, 3 * hidden, device=DEVICE)[:, :, hidden : 2 * hidden]
        static_steps.cell_forward(
            now, cell, after, state, wide[:, :, hidden:], live, second, factors
        )
        made = [now.clone(), after.clone(), wide.clone()]
        if second is not None:
            made.append(second.clone())
        grad_state, above, grad_cell = (part.clone() for part in grads)
        static_steps.cell_backward(now, cell, after, grad_state, above, grad_cell, live, factors)
        results.append([*made, now, grad_cell, *([grad_state] if live is not None else [])])
    for found, expected in zip(*results, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_long_sources_and_alpha_above_2_have_no_attention_kernel() -> None:
    assert static_triton.covers(torch.empty(1, 512, 4, device=DEVICE), 1.5)
    assert not static_triton.covers(torch.empty(1, 513, 4, device=DEVICE), 1.5)
    assert not static_triton.covers(torch.empty(1, 512, 4, device=DEVICE), 2.5)


ABOVE_2 = {"global_attention_alpha": 2.5, "generator_alpha": 2.5, "dropout": 0.0}


@pytest.mark.parametrize(
    ("config", "options"),
    [(CONFIG, {}), (RECURRENT, ABOVE_2), (RECURRENT, {"global_attention": "mlp", **ABOVE_2})],
    ids=["transformer", "general", "mlp"],
)
def test_an_update(config: ModelConfig, options: dict[str, object]) -> None:
    """Loss and all gradients in float32, of learned and fixed alphas, beside float64 on the CPU."""
    model, batch = model_of(config, enc_layers=1, dec_layers=1, **options), padded(batch_of(3))
    triton.failures.append(RuntimeError("left out on purpose"))
    try:
        expected = gradients(padded_loss(model, batch), model)
    finally:
        triton.failures.clear()
    model, batch = model.float().to(DEVICE), replace(batch, ids=batch.ids.to(DEVICE))
    found = gradients(padded_loss(model, batch), model)
    largest = max(float(gradient.abs().max()) for gradient in expected.values())
    for name, gradient in expected.items():
        difference = float((found[name].cpu().double() - gradient).abs().max())
        assert difference <= 1e-5 * largest, name
