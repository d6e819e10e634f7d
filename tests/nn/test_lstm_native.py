"""The LSTM's steps in C++ against the same in PyTorch operations."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from onmt_entmax.nn.lstm import native
from onmt_entmax.nn.lstm.attention import Readout, RecurrentAttention
from onmt_entmax.nn.lstm.cells import Above, Cells, Steps
from onmt_entmax.nn.lstm.native import NativeCells, NativeReadout
from onmt_entmax.nn.products import PreparedWeight
from tests.native_modules import assert_built, under

built = pytest.mark.skipif(native.module is None, reason="the native module was not built")
# In bfloat16 the two round products at different places.
TOLERANCE = {torch.float32: 2e-6, torch.bfloat16: 0.02}


def test_the_module_is_built_where_it_can_be() -> None:
    assert_built(native.module)


@pytest.fixture(params=[1, 2, 3])
def instructions(request: pytest.FixtureRequest) -> Iterator[int]:
    """Use each instruction set that this processor has."""
    yield from under(native.module, request.param)


@pytest.fixture(params=[1, 3])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    """Use this number of threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def assert_close(ours: dict[str, Tensor], theirs: dict[str, Tensor], tolerance: float) -> None:
    """Compare norms of the differences with norms of the expected tensors."""
    for name, expected in theirs.items():
        error = float((ours[name].float() - expected.float()).norm())
        assert error <= tolerance * (float(expected.float().norm()) + 1e-3), f"{name}: {error}"


def run_cells(
    kind: type[Cells],
    lengths: list[int],
    hidden: int,
    dtype: torch.dtype,
    reverse: bool = False,
    with_bias: bool = False,
    factors: bool = True,
) -> dict[str, Tensor]:
    """Return everything that cells write in a forward and a backward pass."""
    torch.manual_seed(hidden)
    steps, batch, wide = Steps.of(lengths), len(lengths), hidden + 3
    order = range(len(steps.sizes))[::-1] if reverse else range(len(steps.sizes))
    weight = (torch.randn(4 * hidden, wide) * 0.3).to(dtype)
    entering, bias = torch.randn(steps.total, 4 * hidden), torch.randn(4 * hidden)
    multiply = PreparedWeight(weight, bias if with_bias else None, result=torch.float32)
    outputs = torch.zeros(steps.total, 2 * hidden)[:, hidden:]
    last = torch.zeros(batch, hidden), torch.zeros(batch, hidden)
    into = torch.zeros(steps.total, wide, dtype=dtype)[:, 2 : 2 + hidden]
    mask = torch.rand(steps.total, hidden) if factors else None
    cells = kind(
        steps, order, multiply, None if with_bias else entering, outputs, last, Above(into, mask)
    )
    if not reverse:
        cells.begin(torch.randn(batch, hidden), torch.randn(batch, hidden))
    cells.inputs[: steps.total, :3] = torch.randn(steps.total, 3)
    for at in range(len(order)):
        cells.forward(at)
    cells.end()
    made = {"inputs": cells.inputs, "outputs": outputs, "into": into}
    made |= {"last": last[0], "last cell": last[1]}
    ends = torch.randn(batch, hidden), torch.randn(batch, hidden)
    cells.start_backward(PreparedWeight(weight.t(), result=torch.float32), *ends)
    arriving, above = torch.randn_like(outputs), torch.randn(steps.total, 2 * hidden)
    for at in reversed(range(len(order))):
        rows = steps.rows(order[at])
        added = above[rows].to(dtype)[:, :hidden] if at % 2 else None
        made[f"input {at}"] = cells.backward(at, None if at % 3 == 2 else arriving[rows], added)
    made["weight"], made["bias"] = cells.finish_backward()
    if not reverse:  # in reverse, no first state was given
        made |= {"first": ends[0], "first cell": ends[1]}
    made |= {"exact": cells.gates_gradient(True), "cast": cells.gates_gradient(False)}
    return made


@built
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("hidden", [1, 16, 37, 300])
def test_cells(
    instructions: int, threads: int, hidden: int, reverse: bool, dtype: torch.dtype
) -> None:
    lengths = [5, 5, 4, 4, 3, 1, 1] * (8 if hidden == 300 else 1)
    lengths.sort(reverse=True)
    for with_bias, factors in ((False, True), (True, False)):
        ours, theirs = (
            run_cells(kind, lengths, hidden, dtype, reverse, with_bias, factors)
            for kind in (NativeCells, Cells)
        )
        assert_close(ours, theirs, TOLERANCE[dtype])


@built
@given(st.lists(st.integers(0, 6), min_size=1, max_size=6).filter(any), st.booleans())
def test_cells_of_any_lengths(lengths: list[int], reverse: bool) -> None:
    lengths.sort(reverse=True)
    ours, theirs = (
        run_cells(kind, lengths, 5, torch.float32, reverse) for kind in (NativeCells, Cells)
    )
    assert_close(ours, theirs, TOLERANCE[torch.float32])


@built
def test_cells_of_extreme_gates(instructions: int) -> None:
    """Saturated gates are exactly open or shut, and nan stays nan."""
    steps = Steps.of([1] * 5)
    gates = torch.tensor([-1e30, -100.0, 0.0, 100.0, torch.nan]).repeat_interleave(2)
    entering = gates.view(5, 2).repeat(1, 4)
    made = []
    for kind in (NativeCells, Cells):
        outputs, last = torch.empty(5, 2), (torch.empty(5, 2), torch.empty(5, 2))
        multiply = PreparedWeight(torch.zeros(8, 2))
        kind(steps, range(1), multiply, entering, outputs, last, None).forward(0)
        made.append(torch.cat([outputs, *last]))
    assert torch.allclose(made[0], made[1], rtol=1e-6, atol=1e-30, equal_nan=True)
    assert made[0].isnan().sum() == 6


def run_readout(
    kind: str,
    alpha: float,
    dtype: torch.dtype,
    whole: bool,
    hidden: int = 37,
    length: int = 19,
    spread: float = 0.5,
) -> dict[str, Tensor]:
    """Return everything that a readout writes or returns in a forward and a backward pass.

    Args:
        kind: `native` or `plain`.
        alpha: of the attention.
        dtype: of the products.
        whole: without padding, dropout, and a gradient of the attention.
        hidden: size.
        length: of the longest source; the others' lengths alternate between the code for long
            rows and that for short ones.
        spread: of the source vectors.
    """
    torch.manual_seed(1)
    steps = Steps.of([4, 4, 3, 2, 2, 1])
    batch = steps.batch
    bank = torch.randn(batch, length, hidden) * spread
    lengths = torch.tensor([length, 3, length - 1, length - 3, 1, length - 7])
    padding = torch.zeros(batch, length)
    padding.masked_fill_(torch.arange(length) >= lengths.unsqueeze(1), -torch.inf)
    weights = {
        "linear_out.weight": torch.randn(hidden, 2 * hidden) * 0.2,
        "linear_in.weight": torch.randn(hidden, hidden) * 0.2,
    }
    queries = torch.randn(steps.total, hidden)
    cast_queries = queries if dtype == torch.float32 else queries.to(dtype)
    attention = RecurrentAttention(
        steps, bank, None if whole else padding, alpha, weights, dtype, queries, cast_queries
    )
    factors = None if whole else torch.rand(steps.total, hidden)
    fed = torch.zeros(steps.total, 2 * hidden, dtype=dtype)[:, :hidden]
    if kind == "native":
        real = None if whole else lengths
        readout: Readout = NativeReadout(steps, attention, factors, fed, real)
    else:
        readout = Readout(steps, attention, factors, fed)
    for step in range(len(steps.sizes)):
        readout.forward(step)
    outputs, attentional, attended = readout.end()
    made = {"outputs": outputs, "attentional": attentional, "attended": attended, "fed": fed}
    grad = torch.randn(steps.total, hidden)
    grad_attention = None if whole else torch.randn(attended.shape)
    readout.start_backward(attentional, attended, grad, grad_attention)
    for step in reversed(range(len(steps.sizes))):
        arriving = torch.randn(steps.total, 2 * hidden).to(dtype)[:, hidden:]
        after = steps.sizes[step + 1] if step + 1 < len(steps.sizes) else 0
        first, more = readout.backward(step, arriving[:after] if after else None)
        made[f"query {step}"] = first.float() + (0 if more is None else more.float())
    made["bank"], by_name = readout.finish_backward()
    return made | by_name | {"grad": grad}


@built
@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("alpha", [1.0, 1.2, 1.33, 1.5, 2.0, 3.0])
def test_readout(
    instructions: int, threads: int, alpha: float, dtype: torch.dtype, whole: bool
) -> None:
    ours, theirs = (run_readout(kind, alpha, dtype, whole) for kind in ("native", "plain"))
    assert_close(ours, theirs, max(TOLERANCE[dtype], 1e-4 if alpha > 2 else 5e-6))
    assert torch.equal(ours["attended"] > 0, theirs["attended"] > 0)


@built
@pytest.mark.parametrize("alpha", [1.0, 1.5, 2.0])
@pytest.mark.parametrize("length", [512, 515, 1030, 4097])
def test_readout_of_long_sources(instructions: int, alpha: float, length: int) -> None:
    """Scores are nearly equal, so that no position is skipped."""
    ours, theirs = (
        run_readout(kind, alpha, torch.float32, False, 8, length, 1e-3)
        for kind in ("native", "plain")
    )
    assert_close(ours, theirs, 1e-4)


@built
def test_readout_divided_among_threads(threads: int) -> None:
    """Large enough for every thread to have work."""
    ours, theirs = (
        run_readout(kind, 1.5, torch.float32, False, 1000) for kind in ("native", "plain")
    )
    assert_close(ours, theirs, 1e-5)


@built
def test_plans_of_another_size_are_refused() -> None:
    assert native.module is not None
    with pytest.raises(ValueError, match="a plan of 8 bytes"):
        native.module.cell_forward("f", 1, bytes(8), 0, 1, 0, 0, 0)
