"""CUDA graphs: recorded calls of a function, which start all its kernels at once.

A graph works on the memory of its recording. What the function reads must be at the same addresses
at every call; otherwise the graph silently reads stale data. In the mode "check", the first replay
of each graph is compared with a plain call.

`Recorder.call` is given a key, which names all that may change from call to call besides the
content of the memory. What it does with the function depends on how often the key has come:

    1st    call it: this compiles kernels and allocates memory, which no recording may do
    2nd    record it, which computes nothing, and replay the graph
    3rd..  replay the graph
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from onmt_entmax.errors import UserError

# Each graph keeps memory. When there are so many, functions with new keys are called without one.
MOST_GRAPHS = 128
# Stands in for the largest value of a tensor of zeros, where a graph may differ by nothing.
_LEAST_SCALE = 1e-30


def _tolerance(dtype: torch.dtype) -> float:
    """Return by how much a graph may differ from a plain call, relative to the largest value.

    It replays the same kernels, but products may add in another order. In float32 and float64 there
    is room for a thousand roundings, of 6e-8 and 1e-16. TF32 rounds each factor by 5e-4, but sums
    no worse than float32: a few factors in a row, not a thousand. Whole numbers must be equal.
    """
    if dtype == torch.float32:
        return 1e-4 if torch.get_float32_matmul_precision() == "highest" else 1e-2
    return 1e-10 if dtype == torch.float64 else 0.0


class Recorder:
    """Calls functions: plainly at first, and later by graphs, see the top of this file.

    On a CPU a function is its own graph, so that tests run everything but the capture.

    Args:
        device: the device of the model.
        mode: "on", "off" (plain calls), or "check".
    """

    def __init__(self, device: torch.device, mode: str) -> None:
        self._device = device
        self._mode = mode
        self._on_gpu = device.type == "cuda" and mode != "off"
        self._pool = torch.cuda.graph_pool_handle() if self._on_gpu else None
        self._side_stream = torch.cuda.Stream(device) if self._on_gpu else None
        self._graphs: dict[Hashable, Callable[[], object]] = {}
        self._calls: Counter[Hashable] = Counter()

    @property
    def captured(self) -> int:
        """Return the number of graphs."""
        return len(self._graphs)

    def call(
        self,
        key: Hashable,
        function: Callable[[], object],
        changed: Callable[[], list[Tensor]],
        lasting: bool = True,
    ) -> None:
        """Call a function that reads and writes the same memory at every call.

        Args:
            key: all that the function depends on besides the content of its memory.
            function: must not read values back.
            changed: returns the tensors that it changes.
            lasting: whether there will be more calls with this key, so that a graph is worth while.

        Raises:
            UserError: in the mode "check", a graph's results differ from those of the function.
        """
        if key in self._graphs:
            self._graphs[key]()
            return
        self._calls[key] += 1
        if self._mode == "off":
            function()
        elif self._calls[key] == 1 or not lasting or self.captured >= MOST_GRAPHS:
            with self._on_side_stream():
                function()
        else:
            replay = self._capture(function)
            if self._mode == "check":
                self._compare(key, replay, function, changed())
            else:
                replay()
            self._graphs[key] = replay

    def _capture(self, function: Callable[[], object]) -> Callable[[], object]:
        """Record a function, without effect on its memory; return what replays it."""
        if not self._on_gpu:
            return function
        graph = torch.cuda.CUDAGraph()
        # Let other threads use the GPU meanwhile.
        with torch.cuda.graph(graph, pool=self._pool, capture_error_mode="thread_local"):
            function()
        return graph.replay

    @contextmanager
    def _on_side_stream(self) -> Iterator[None]:
        """Run a function on a side stream, as CUDA requires before its capture.

        The side stream waits for all work before, and later work waits for the side stream: in
        effect the function runs at its place in the current stream.
        """
        if self._side_stream is None:
            yield
            return
        here = torch.cuda.current_stream(self._device)
        self._side_stream.wait_stream(here)
        with torch.cuda.stream(self._side_stream):
            yield
        here.wait_stream(self._side_stream)

    def _compare(
        self,
        key: Hashable,
        replay: Callable[[], object],
        function: Callable[[], object],
        changed: list[Tensor],
    ) -> None:
        """Compare a graph's first replay with a plain call, and keep the result of the call.

        Args:
            key: the key of the graph, for the error.
            replay: runs the graph.
            function: what was recorded.
            changed: tensors that both change; both begin with the same values.

        Raises:
            UserError: a tensor differs by more than rounding.
        """
        before = [tensor.detach().clone() for tensor in changed]
        with torch.random.fork_rng([self._device] if self._on_gpu else []):
            replay()
        replayed = [tensor.detach().clone() for tensor in changed]
        with torch.no_grad():
            torch._foreach_copy_(changed, before)
        function()
        for actual, tensor in zip(replayed, changed, strict=True):
            expected = tensor.detach()
            scale = float(expected.abs().max())
            difference = float((actual - expected).abs().max())
            largest = _tolerance(expected.dtype) * max(scale, _LEAST_SCALE)
            is_near = difference <= largest  # false for nan
            if not is_near:
                raise UserError(
                    f"the CUDA graph of {key} differs from a plain update by {difference:.2g} "
                    f"where the largest value is {scale:.2g}; train with `cuda_graphs: off` and "
                    "report it"
                )
