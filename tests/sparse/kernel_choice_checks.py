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


class TestALearnedAlphaAbove2:
    """Its row is for PyTorch to solve, but while a CUDA graph records, no alpha can be read."""

    SCORES = torch.randn(2, 30, generator=torch.Generator().manual_seed(0)).to(DEVICE)

    @pytest.fixture
    def probabilities(self) -> Tensor:
        """The probabilities ``(2, 30)`` of a row with alpha 1.5 and of one with 2.5."""
        alphas = torch.tensor([[1.5], [2.5]], device=DEVICE)
        return triton.mapping(self.SCORES, alphas, logs=False)

    def test_gives_nan_in_the_kernel(self, probabilities: Tensor) -> None:
        assert probabilities[1].isnan().all()

    def test_leaves_other_rows_as_they_are(self, probabilities: Tensor) -> None:
        expected = reference.mapping(self.SCORES[:1], 1.5, logs=False)
        torch.testing.assert_close(probabilities[:1], expected)


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


class TestKernelsThatDoNotStart:
    @pytest.fixture(autouse=True)
    def no_compiler(
        self, kernels_are_there: None, monkeypatch: pytest.MonkeyPatch
    ) -> Iterator[None]:
        def fail(*_: object) -> None:
            raise RuntimeError("no compiler")

        monkeypatch.setattr(triton_rows, "_solve", fail)
        # Whether kernels start is tried once in a process.
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
