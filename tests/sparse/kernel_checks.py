"""The GPU kernels of rows compute what `sparse/reference.py` defines, in float64.

Not collected by itself: test_kernels.py runs it on a GPU or in Triton's interpreter, in a process
of its own, since the interpreter must be chosen before Triton is imported.
"""

from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from onmt_entmax.sparse import backends, entmax, entmax_loss, log_entmax, reference
from onmt_entmax.sparse.backends import solve, triton_rows
from tests.sparse.implementations import KERNEL_DEVICE as DEVICE

# An alpha for each of four rows: softmax; near it; where the log form is exact; sparsemax.
LEARNED = torch.tensor([[1.0], [1.0001], [1.3], [2.0]], device=DEVICE)
# The second row has no target (`ignore_index`): its loss and its gradients are 0.
TARGET = torch.tensor([1, -100, 2, 0], device=DEVICE)
FLOAT32 = 4  # bytes
slow = pytest.mark.slow

pytestmark = pytest.mark.usefixtures("kernels_are_there")


# --- all functions of rows, short and long ---------------------------------------------------


def use_short_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the kernels of long rows take rows of 65 scores or more: the interpreter is slow.

    They then read tiles of 128 scores, and list up to 32 candidates for the support.
    """
    monkeypatch.setattr(triton_rows, "_REGISTERS", 64 * FLOAT32)
    monkeypatch.setattr(triton_rows, "_TILE", 128 * FLOAT32)
    monkeypatch.setattr(triton_rows, "_ROOM", 32)
    monkeypatch.setattr(triton_rows, "short_tile", triton_rows.short_tile.__wrapped__)  # no cache


class Results(NamedTuple):
    """What all functions of rows return for some scores.

    Attributes:
        values: probabilities, logarithms, losses and the results of `solve`, each by a name that a
            failure shows.
        gradients: gradients of the mapping and of the loss with respect to scores and alphas, and a
            second derivative, likewise.
    """

    values: dict[str, Tensor]
    gradients: dict[str, Tensor]


def results_of(scores: Tensor, alpha: float | Tensor, upstream: Tensor) -> Results:
    """Return values and gradients for scores, from the chosen backend.

    Args:
        scores: ``(4, n)``.
        alpha: a number, or one for each row ``(4, 1)``.
        upstream: the upstream gradient ``(4, n)`` for the probabilities and for the second
            derivative; its first column is the upstream gradient for the losses.
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
    """Return the results of `backends.solve`, by name; probabilities replace the scores."""
    memory = scores.clone()
    shifted, maxima = solve(memory, alpha, memory)
    return {"probabilities in place": memory, "shifted conjugates": shifted, "maxima": maxima}


def gradients_of(
    p: Tensor, losses: Tensor, leaves: dict[str, Tensor], upstream: Tensor
) -> dict[str, Tensor]:
    """Return the gradients of a row's results, and a second derivative of its loss.

    Args:
        p: probabilities ``(4, n)``.
        losses: ``(4,)``.
        leaves: the scores, and alphas if they have a gradient, by name.
        upstream: see `results_of`.
    """
    inputs = list(leaves.values())
    of_mapping = torch.autograd.grad(p, inputs, upstream)
    of_loss = torch.autograd.grad(losses @ upstream[:, 0], inputs, create_graph=True)
    (second,) = torch.autograd.grad(of_loss[0], leaves["scores"], upstream)
    return {
        **{f"mapping, {name}": g for name, g in zip(leaves, of_mapping, strict=True)},
        **{f"loss, {name}": g for name, g in zip(leaves, of_loss, strict=True)},
        "second, of the loss": second,
    }


def scores_of(length: int, dtype: torch.dtype) -> Tensor:
    """Return scores ``(4, length)`` with supports of several sizes.

    Closer scores have larger supports. Of 300 scores, some rows have more than the 32 candidates
    that fit into the list of `use_short_limits`, and others fewer, so that a long row is solved
    both from the list and from all of its scores.
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
    """Results of the kernels, and of the definition in float64, for the same scores."""
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
        ours: results of the kernels, which compute in one type.
        expected: results of the definition, in float64.
        dtype: that type. But the gradients of alphas are always float32, as the alphas are.
    """
    for name, result in expected.items():
        # In float32, hundreds of machine epsilons, since gradients are differences of larger
        # numbers. In float64, `alpha_terms` has a series with an error of 3e-10.
        tolerance = 5e-5 if torch.float32 in (dtype, ours[name].dtype) else 1e-9
        scale = result.detach().abs().amax().clamp_min(0.1)
        assert ((ours[name] - result).abs() <= tolerance * scale).all(), name


def test_values_equal_the_definition_in_float64(compared: Compared) -> None:
    assert_close(compared.ours.values, compared.expected.values, compared.dtype)


def test_gradients_equal_the_definition_in_float64(compared: Compared) -> None:
    assert_close(compared.ours.gradients, compared.expected.gradients, compared.dtype)


# --- long rows -------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [1.2, 1.5])
def test_rows_of_several_tiles_equal_the_definition(alpha: float) -> None:
    """With the real limits, 9,000 scores are two tiles of 4,096 and a part of a third."""
    scores = torch.randn(2, 9000, device=DEVICE)
    expected = reference.mapping(scores.double(), alpha, logs=False)
    torch.testing.assert_close(entmax(scores, alpha).double(), expected, rtol=1e-4, atol=2e-6)
