"""When the GPU kernels of rows are chosen: learned alphas, graphs, and kernels that do not start.

Not collected by itself: test_kernels.py runs it, as kernel_checks.py, in Triton's interpreter or on
a GPU.
"""

import warnings
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from onmt_entmax.sparse import backends, entmax, reference
from onmt_entmax.sparse.backends import triton, triton_rows
from tests.sparse.implementations import KERNEL_DEVICE as DEVICE

pytestmark = pytest.mark.usefixtures("kernels_are_there")


# --- learned alphas --------------------------------------------------------------------------


@pytest.fixture
def scores() -> Tensor:
    return torch.randn(2, 30, device=DEVICE)


@pytest.fixture
def with_an_alpha_above_2(scores: Tensor) -> Tensor:
    """Probabilities ``(2, 30)`` by the kernels, of a row with alpha 1.5 and of one with 2.5.

    PyTorch would solve the second row. But the kernels get it while a CUDA graph records, when no
    alpha can be read.
    """
    return triton.mapping(scores, torch.tensor([[1.5], [2.5]], device=DEVICE), logs=False)


def test_the_kernels_give_nan_for_an_alpha_above_2(with_an_alpha_above_2: Tensor) -> None:
    assert with_an_alpha_above_2[1].isnan().all()


def test_an_alpha_above_2_does_not_change_other_rows(
    scores: Tensor, with_an_alpha_above_2: Tensor
) -> None:
    expected = reference.mapping(scores[:1], 1.5, logs=False)
    torch.testing.assert_close(with_an_alpha_above_2[:1], expected)


@pytest.mark.skipif(DEVICE == "cpu", reason="only a GPU records graphs")
def test_a_graph_records_the_kernels_of_learned_alphas() -> None:
    alphas = torch.tensor([[1.0], [1.0001], [1.3], [2.0]], device=DEVICE)
    scores, graph = torch.randn(4, 30, device=DEVICE), torch.cuda.CUDAGraph()
    expected = entmax(scores, alphas)
    with torch.cuda.graph(graph):
        assert backends.backend_for(scores, alphas) is triton
        p = entmax(scores, alphas)
    graph.replay()
    torch.testing.assert_close(p, expected)


# --- kernels that do not start ---------------------------------------------------------------


@pytest.fixture
def no_compiler(kernels_are_there: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the kernels fail to start, as they do without a C compiler."""

    def fail(*_: object) -> None:
        raise RuntimeError("no compiler")

    monkeypatch.setattr(triton_rows, "_solve", fail)
    # Whether kernels start is tried once in a process.
    backends._gpu.cache_clear()
    yield
    backends._gpu.cache_clear()


@pytest.mark.usefixtures("no_compiler")
def test_pytorch_replaces_kernels_that_do_not_start_with_a_warning() -> None:
    with pytest.warns(RuntimeWarning, match="slower: no compiler"):
        assert backends.backend_for(torch.zeros(1, 2, device=DEVICE), 1.5) is reference


@pytest.mark.usefixtures("no_compiler")
@pytest.mark.filterwarnings("ignore:the GPU kernels")
def test_kernels_that_do_not_start_give_one_warning(scores: Tensor) -> None:
    backends.backend_for(scores, 1.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert torch.equal(entmax(scores, 1.5), reference.mapping(scores, 1.5, logs=False))
