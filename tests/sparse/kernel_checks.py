"""The GPU kernels of rows, in Triton's interpreter or on a GPU.

Not collected by itself: test_kernels.py runs it in a process of its own, since the interpreter has
to be asked for before Triton is imported.
"""

import warnings

import pytest
import torch
from torch import Tensor

from onmt_entmax.sparse import backends, entmax, entmax_loss, log_entmax, reference
from onmt_entmax.sparse.backends import solve, triton, triton_rows

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
LEARNED = torch.tensor([[1.0], [1.0001], [1.3], [2.0]], device=DEVICE)
slow = pytest.mark.slow


@pytest.fixture(autouse=True)
def kernels_are_there() -> None:
    assert backends.of(torch.zeros(1, 2, device=DEVICE), 1.5) is triton


@pytest.fixture
def short_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows count as long from 65 scores on, in tiles of 128, with lists of 32 candidates."""
    monkeypatch.setattr(triton_rows, "_REGISTERS", 64 * 4)
    monkeypatch.setattr(triton_rows, "_TILE", 128 * 4)
    monkeypatch.setattr(triton_rows, "_ROOM", 32)
    monkeypatch.setattr(triton_rows, "short_rows", triton_rows.short_rows.__wrapped__)  # no cache


def values_and_gradients(scores: Tensor, alpha: float | Tensor, upstream: Tensor) -> list[Tensor]:
    """Return values and gradients of all functions of scores ``(4, n)``."""
    z = scores.clone().requires_grad_()
    inputs = [z]
    if isinstance(alpha, Tensor):
        alpha = alpha.clone().requires_grad_()
        inputs.append(alpha)
    p, target = entmax(z, alpha), torch.tensor([1, -100, 2, 0], device=scores.device)
    losses = entmax_loss(z, target, alpha, reduction="none", label_smoothing=0.1)
    solved_in_place = scores.clone()
    of_rows = solve(solved_in_place, 1.3 if isinstance(alpha, Tensor) else alpha, solved_in_place)
    gradients = torch.autograd.grad(p, inputs, upstream, retain_graph=True)
    of_loss = torch.autograd.grad(losses @ upstream[:, 0], inputs, create_graph=True)
    (second,) = torch.autograd.grad(of_loss[0], z, upstream)
    logs = log_entmax(z, alpha)
    return [p, logs.exp(), losses, solved_in_place, *of_rows, *gradients, *of_loss, second]


@pytest.mark.parametrize(
    ("alpha", "length"),
    [(1.05, 13), (1.33, 300), (1.5, 13), (1.5, 300), (2.0, 13), (LEARNED, 13), (LEARNED, 300)],
    ids=str,
)
@pytest.mark.parametrize("dtype", [torch.float32, pytest.param(torch.float64, marks=slow)])
def test_equal_the_definition_in_float64(
    short_limits: None,
    alpha: float | Tensor,
    length: int,
    dtype: torch.dtype,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Short rows, and long ones with room for the candidates and without."""
    spread = torch.tensor([[0.1], [1.0], [4.0], [1.0]])
    scores = (torch.randn(4, length) * spread).to(DEVICE, dtype)
    scores[3, 5 : length // 2] = -50.0
    upstream = torch.randn(4, length).to(DEVICE, dtype)
    ours = values_and_gradients(scores, alpha, upstream)
    monkeypatch.setattr(backends, "of", lambda *_: reference)
    exact_alpha = alpha.double() if isinstance(alpha, Tensor) else alpha
    expected = values_and_gradients(scores.double(), exact_alpha, upstream.double())
    for value, exact in zip(ours, expected, strict=True):
        # The gradient of alphas in float32 is rounded to float32.
        tolerance = 5e-5 if torch.float32 in (dtype, value.dtype) else 1e-9
        scale = exact.detach().abs().amax().clamp_min(0.1)
        assert ((value - exact).abs() <= tolerance * scale).all()


@pytest.mark.parametrize("alpha", [1.2, 1.5])
def test_rows_of_whole_tiles(alpha: float) -> None:
    scores = torch.randn(2, 9000, device=DEVICE)
    exact = reference.mapping(scores.double(), alpha, False)
    torch.testing.assert_close(entmax(scores, alpha).double(), exact, rtol=1e-4, atol=2e-6)


def test_alphas_above_2_that_could_not_be_read_give_nan() -> None:
    """While a CUDA graph is captured, nothing can be read; else they would be PyTorch's."""
    scores, alphas = torch.randn(2, 30, device=DEVICE), torch.tensor([[1.5], [2.5]], device=DEVICE)
    p = triton.mapping(scores, alphas, False)
    assert p[1].isnan().all()
    torch.testing.assert_close(p[:1], reference.mapping(scores[:1], 1.5, False))


@pytest.mark.skipif(DEVICE == "cpu", reason="only a GPU records graphs")
def test_learned_alphas_have_kernels_in_a_graph() -> None:
    scores, graph = torch.randn(4, 30, device=DEVICE), torch.cuda.CUDAGraph()
    expected = entmax(scores, LEARNED)
    with torch.cuda.graph(graph):
        assert backends.of(scores, LEARNED) is triton
        p = entmax(scores, LEARNED)
    graph.replay()
    torch.testing.assert_close(p, expected)


def test_kernels_that_do_not_start_are_replaced_after_one_warning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("no compiler")

    monkeypatch.setattr(triton_rows, "_solve", fail)
    backends._gpu.cache_clear()
    try:
        with pytest.warns(RuntimeWarning, match="slower: no compiler"):
            assert backends.of(torch.zeros(1, 2, device=DEVICE), 1.5) is reference
        scores = torch.randn(3, 20, device=DEVICE)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert torch.equal(entmax(scores, 1.5), reference.mapping(scores, 1.5, False))
    finally:
        backends._gpu.cache_clear()
