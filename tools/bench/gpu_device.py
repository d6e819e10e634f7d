"""The device of the benchmark of `gpu.py`, with its clock and its CUDA graphs."""

from __future__ import annotations

import statistics
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch

# A row of results, of one measurement; `gpu.py` writes it as JSON. A false "ok" is a failure.
Result = dict[str, Any]
LONGEST_ERROR = 300  # characters of an error's text, which are kept
AS_WRITTEN = "as written"  # a way to run a function; the other is as a CUDA graph


class Way(NamedTuple):
    """A way to run a function.

    Attributes:
        name: `AS_WRITTEN`, or "CUDA graph".
        run: runs the function in this way.
    """

    name: str
    run: Callable[[], object]


class Device:
    """A GPU or the CPU.

    Args:
        name: such as `cuda`.

    Attributes:
        device: the device, for PyTorch.
        is_gpu: whether the device is a GPU.
    """

    def __init__(self, name: str) -> None:
        self.device = torch.device(name)
        self.is_gpu = self.device.type == "cuda"

    def wait(self) -> None:
        """Wait for the GPU."""
        if self.is_gpu:
            torch.cuda.synchronize()

    def works(self) -> bool:
        """Return whether the device still computes: not after some errors and failed captures."""
        try:
            return bool(torch.rand(8, device=self.device).sum() >= 0)
        except RuntimeError:
            return False

    def clock(self) -> float:
        """Return the time in seconds, after waiting."""
        self.wait()
        return time.perf_counter()

    def median(self, run: Callable[[], object], repeats: int, warmup: int = 3) -> float:
        """Return the median time of a function in milliseconds, with waits around each call."""
        for _ in range(warmup):
            run()
        times = []
        for _ in range(repeats):
            start = self.clock()
            run()
            times.append(self.clock() - start)
        return 1000 * statistics.median(times)

    def ways(self, run: Callable[[], object]) -> Iterator[Way]:
        """Yield a function as it is and, on a GPU, captured: a replay starts it without Python."""
        yield Way(AS_WRITTEN, run)
        if not self.is_gpu:
            return
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):  # kernels compile before they are captured
            run()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph):
                run()
        except RuntimeError:  # what was yielded can still be useful
            traceback.print_exc()
        else:
            yield Way("CUDA graph", graph.replay)
