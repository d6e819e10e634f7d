"""The GPU kernels of rows, in Triton's interpreter or on a GPU.

Not collected by itself: test_kernels.py runs it in a process of its own, since the interpreter has
to be asked for before Triton is imported.
"""

import warnings
from collections.abc import Iterator
from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from onmt_entmax.sparse import backends, entmax, entmax_loss, log_entmax, reference
from onmt_entmax.sparse.backends import solve, triton, triton_rows

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
# An alpha for each of four rows: softmax; near it; where the log form is exact; sparsemax.
LEARNED = torch.tensor([[1.0], [1.0001], [1.3], [2.0]], device=DEVICE)
# The second row has no target (`ignore_index`): its loss and its gradients are 0.
TARGET = torch.tensor([1, -100, 2, 0], device=DEVICE)
slow = pytest.mark.slow


@pytest.fixture(autouse=True)
def kernels_are_there() -> None:
    """Fail where PyTorch would do the kernels' work."""
    assert backends.backend_for(torch.zeros(1, 2, device=DEVICE), 1.5) is triton


# --- all functions of rows, short and long ---------------------------------------------------


def use_short_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows count as long from 65 scores on, in tiles of 128, with lists of 32 candidates."""
    monkeypatch.setattr(triton_rows, "_REGISTERS", 64 * 4)
    monkeypatch.setattr(triton_rows, "_TILE", 128 * 4)
    monkeypatch.setattr(triton_rows, "_ROOM", 32)
    monkeypatch.setattr(triton_rows, "short_rows", triton_rows.short_rows.__wrapped__)  # no cache


class Results(NamedTuple):
    """What all functions of rows give for some scores, under names for people.

    Each is computed by the kernels and by the definition, and compared name by name.
    """

    values: dict[str, Tensor]
    """Probabilities, logarithms, losses, and what `solve` returns."""
    gradients: dict[str, Tensor]
    """Of the mapping and the loss, in scores and alphas; and second ones."""


def results_of(scores: Tensor, alpha: float | Tensor, upstream: Tensor) -> Results:
    """Return the results for scores ``(4, n)``, and their gradients in scores and alphas of rows.

    Args:
        scores: of `scores_of`.
        alpha: a number, or one for each row ``(4, 1)``.
        upstream: gradient in the probabilities, and in the gradient in the scores; ``(4, n)``.
    """
    z = scores.clone().requires_grad_()
    leaves = {"scores": z}
    if isinstance(alpha, Tensor):
        leaves["alphas"] = alpha = alpha.clone().requires_grad_()
    p = entmax(z, alpha)
    losses = entmax_loss(z, TARGET, alpha, reduction="none", label_smoothing=0.1)
    values = {
        "probabilities": p,
        "exponentials of logarithms": log_entmax(z, alpha).exp(),
        "losses": losses,
        **solved_in_place(scores, alpha.detach() if isinstance(alpha, Tensor) else alpha),
    }
    return Results(values, gradients_of(p, losses, leaves, upstream))


def solved_in_place(scores: Tensor, alpha: float | Tensor) -> dict[str, Tensor]:
    """Return what `backends.solve` gives, with probabilities in the memory of the scores."""
    memory = scores.clone()
    shifted, maxima = solve(memory, alpha, memory)
    return {"probabilities in place": memory, "shifted conjugates": shifted, "maxima": maxima}


def gradients_of(
    p: Tensor, losses: Tensor, leaves: dict[str, Tensor], upstream: Tensor
) -> dict[str, Tensor]:
    """Return the gradients of probabilities and losses in leaves, and second ones in the scores."""
    inputs = list(leaves.values())
    of_mapping = torch.autograd.grad(p, inputs, upstream)
    of_loss = torch.autograd.grad(losses @ upstream[:, 0], inputs, create_graph=True)
    (second,) = torch.autograd.grad(of_loss[0], leaves["scores"], upstream)
    return {
        **{f"of the mapping in {name}": g for name, g in zip(leaves, of_mapping, strict=True)},
        **{f"of the loss in {name}": g for name, g in zip(leaves, of_loss, strict=True)},
        "second, of the loss": second,
    }


def scores_of(length: int, dtype: torch.dtype) -> Tensor:
    """Return scores ``(4, length)``: with large, medium and small supports, and far apart.

    With 300 scores, and the 32 candidates that `use_short_limits` has room for, some rows have
    fewer candidates and others more, so that both ways to solve a long row are taken.
    """
    spread = torch.tensor([[0.1], [1.0], [4.0], [1.0]])
    scores = torch.randn(4, length) * spread
    scores[3, 5 : length // 2] = -50.0
    return scores.to(DEVICE, dtype)


class Compared(NamedTuple):
    """Results of the kernels in a type, and of the definition in float64."""

    dtype: torch.dtype
    ours: Results
    expected: Results


ALPHAS_AND_LENGTHS: list[tuple[float | Tensor, int]] = [
    (1.05, 13),
    (1.33, 300),
    (1.5, 13),
    (1.5, 300),
    (2.0, 13),
    (LEARNED, 13),
    (LEARNED, 300),
]
CASES = [
    pytest.param(
        (alpha, length, dtype),
        id=f"{'learned' if alpha is LEARNED else alpha}, {length} scores, {dtype}",
        marks=[slow] if dtype == torch.float64 else [],
    )
    for alpha, length in ALPHAS_AND_LENGTHS
    for dtype in (torch.float32, torch.float64)
]


@pytest.fixture(scope="module", params=CASES)
def compared(request: pytest.FixtureRequest) -> Compared:
    """Short rows, and long ones with room for the candidates and without."""
    alpha, length, dtype = request.param
    exact_alpha = alpha.double() if isinstance(alpha, Tensor) else alpha
    torch.manual_seed(0)
    scores, upstream = scores_of(length, dtype), torch.randn(4, length).to(DEVICE, dtype)
    with pytest.MonkeyPatch.context() as patch:
        use_short_limits(patch)
        ours = results_of(scores, alpha, upstream)
        patch.setattr(backends, "backend_for", lambda *_: reference)
        expected = results_of(scores.double(), exact_alpha, upstream.double())
    return Compared(dtype, ours, expected)


def assert_close(ours: dict[str, Tensor], expected: dict[str, Tensor], dtype: torch.dtype) -> None:
    """Compare with a tolerance in relation to the largest number of each tensor.

    Args:
        ours: of the kernels, which compute in a type.
        expected: of the definition, in float64.
        dtype: the type. Gradients in alphas are always float32, that of the alphas.
    """
    for name, result in expected.items():
        # Hundreds of roundings of float32, since gradients are differences of larger numbers. In
        # float64, `alpha_terms` has a series to 3e-10.
        tolerance = 5e-5 if torch.float32 in (dtype, ours[name].dtype) else 1e-9
        scale = result.detach().abs().amax().clamp_min(0.1)
        assert ((ours[name] - result).abs() <= tolerance * scale).all(), name


def test_values_equal_the_definition_in_float64(compared: Compared) -> None:
    assert_close(compared.ours.values, compared.expected.values, compared.dtype)


def test_gradients_equal_the_definition_in_float64(compared: Compared) -> None:
    assert_close(compared.ours.gradients, compared.expected.gradients, compared.dtype)


# --- whole tiles, graphs, and no kernels -----------------------------------------------------


@pytest.mark.parametrize("alpha", [1.2, 1.5])
def test_rows_of_whole_tiles(alpha: float) -> None:
    """With the limits as they are: 9,000 scores are long, two tiles of 4,096 and a part of one."""
    scores = torch.randn(2, 9000, device=DEVICE)
    expected = reference.mapping(scores.double(), alpha, logs=False)
    torch.testing.assert_close(entmax(scores, alpha).double(), expected, rtol=1e-4, atol=2e-6)


def test_alphas_above_2_that_could_not_be_read_give_nan() -> None:
    """While a CUDA graph records, nothing can be read; at other times PyTorch solves these rows."""
    scores, alphas = torch.randn(2, 30, device=DEVICE), torch.tensor([[1.5], [2.5]], device=DEVICE)
    p = triton.mapping(scores, alphas, logs=False)
    assert p[1].isnan().all()
    torch.testing.assert_close(p[:1], reference.mapping(scores[:1], 1.5, logs=False))


@pytest.mark.skipif(DEVICE == "cpu", reason="only a GPU records graphs")
def test_learned_alphas_have_kernels_in_a_graph() -> None:
    scores, graph = torch.randn(4, 30, device=DEVICE), torch.cuda.CUDAGraph()
    expected = entmax(scores, LEARNED)
    with torch.cuda.graph(graph):
        assert backends.backend_for(scores, LEARNED) is triton
        p = entmax(scores, LEARNED)
    graph.replay()
    torch.testing.assert_close(p, expected)


class TestKernelsThatDoNotStart:
    @pytest.fixture(autouse=True)
    def no_compiler(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        def fail(*_: object) -> None:
            raise RuntimeError("no compiler")

        monkeypatch.setattr(triton_rows, "_solve", fail)
        backends._gpu.cache_clear()
        yield
        backends._gpu.cache_clear()

    def test_are_replaced_with_a_warning(self) -> None:
        with pytest.warns(RuntimeWarning, match="slower: no compiler"):
            assert backends.backend_for(torch.zeros(1, 2, device=DEVICE), 1.5) is reference

    @pytest.mark.filterwarnings("ignore:the GPU kernels")
    def test_are_replaced_after_one_warning(self) -> None:
        scores = torch.randn(3, 20, device=DEVICE)
        backends.backend_for(scores, 1.5)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert torch.equal(entmax(scores, 1.5), reference.mapping(scores, 1.5, logs=False))
