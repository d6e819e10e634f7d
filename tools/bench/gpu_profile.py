"""The time of each kernel of a training step on a GPU, for `gpu.py`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch

from onmt_entmax.data.batch import Batch
from tools.bench.gpu_contenders import StaticStep
from tools.bench.gpu_device import Result

SLOWEST = 30  # kernels of a step, which are kept
LONGEST_NAME = 110  # characters of a kernel's name, which are kept


class Kernel(NamedTuple):
    """Calls of a kernel.

    Attributes:
        name: of the kernel.
        milliseconds: of all its calls.
        calls: their number.
    """

    name: str
    milliseconds: float
    calls: int


def profile_step(step: StaticStep, batches: Sequence[Batch]) -> Result:
    """Return the time of each kernel in a plain step, on the batch of median size."""
    by_size = sorted(batches, key=lambda batch: math.prod(step.shapes.of(batch)))
    batch = by_size[len(batches) // 2]
    kernels = kernels_of(step, batch)
    return {
        "shape": tuple(step.shapes.of(batch)),
        "kernels": sum(kernel.calls for kernel in kernels),
        "kernels_ms": round(sum(kernel.milliseconds for kernel in kernels), 2),
        "top": [
            {
                "kernel": kernel.name[:LONGEST_NAME],
                "ms": round(kernel.milliseconds, 3),
                "count": kernel.calls,
            }
            for kernel in kernels[:SLOWEST]
        ],
    }


def kernels_of(step: StaticStep, batch: Batch) -> list[Kernel]:
    """Return the kernels of a step on a batch, the slowest first."""
    from torch.profiler import ProfilerActivity, profile  # takes a second

    step.take(batch)  # compiles what is not compiled yet
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as profiled:
        step.take(batch)
        torch.cuda.synchronize()
    kernels = []
    for event in profiled.key_averages():
        # Releases of PyTorch differ in these attributes.
        microseconds = getattr(event, "self_device_time_total", 0)
        if microseconds and str(getattr(event, "device_type", "")).endswith("CUDA"):
            kernels.append(Kernel(event.key, microseconds / 1000, event.count))
    return sorted(kernels, key=lambda kernel: kernel.milliseconds, reverse=True)
