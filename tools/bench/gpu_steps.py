"""The times of training steps, for `gpu.py`: of OpenNMT-py, and of this project in three ways.

Each contender trains before it is timed, since the cost of entmax depends on the support. An error
of one is a row of the results, and the others are still timed.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch

from onmt_entmax.data.batch import Batch
from onmt_entmax.data.shapes import Shapes
from onmt_entmax.train.contexts import tf32_products
from tools.bench.gpu_contenders import PackedStep, StaticStep, StockStep
from tools.bench.gpu_device import Device
from tools.bench.gpu_sizes import Size

LEARNING_RATE = 1e-3
# OpenNMT-py; this project without padding, with padding, and with padding and CUDA graphs.
Kind = Literal["stock", "packed", "plain", "graph"]
KINDS: tuple[Kind, ...] = get_args(Kind)
SLOWEST_KERNELS = 30  # of a step, which are kept
Result = dict[str, Any]


@dataclass(frozen=True)
class Contender:
    """What takes steps.

    Attributes:
        kind: whose steps, and how they are taken.
        alpha: as `Size.model` takes it; of stock, only a name.
        tf32: whether products are in TF32.
    """

    kind: Kind
    alpha: str
    tf32: bool = False

    @property
    def name(self) -> str:
        """Name in the tables."""
        return f"{self.kind} {self.alpha}" + (" tf32" if self.tf32 else "")


def contenders_of(size: Size, device: Device) -> list[Contender]:
    """Return the contenders for steps of a size."""
    contenders = [
        Contender("stock", "softmax"),
        Contender("packed", "1.5"),
        Contender("plain", "1.5"),
        Contender("graph", "1.5"),
        Contender("graph", "learned" if size.transformer else "1.33"),
        Contender("graph", "1"),
    ]
    if device.is_gpu:
        contenders.append(Contender("graph", "1.5", tf32=True))
    return contenders


def time_steps(device: Device, size: Size, options: argparse.Namespace) -> Iterator[Result]:
    """Yield the time of a training step of each contender that the options name."""
    timer = _Timer(device, size, options)
    for contender in contenders_of(size, device):
        if contender.kind not in options.contenders:
            continue
        row: Result = {"size": size.name, "pairs": size.batch, "contender": contender.name}
        try:
            with tf32_products(contender.tf32):
                row |= timer.time(contender)
        except Exception as error:  # the others can still be useful
            traceback.print_exc()
            row |= {"ms": math.nan, "error": repr(error)[:300], "ok": False}
        yield row
        if not device.works():
            return
        if device.is_gpu:
            torch.cuda.empty_cache()


class _Timer:
    """Times steps of contenders on the same batches.

    Args:
        device: where they are taken.
        size: of model and batches.
        options: of the command line.
    """

    def __init__(self, device: Device, size: Size, options: argparse.Namespace) -> None:
        self._device = device
        self._size = size
        self._options = options
        self._batches = size.batches(options.batches)
        self._dropout = 0.1 if size.transformer else 0.3

    def time(self, contender: Contender) -> Result:
        """Return the times of a contender's steps."""
        if contender.kind == "stock":
            return self._time_stock()
        if contender.kind == "packed":
            return self._time_packed(contender.alpha)
        return self._time_padded(contender.alpha, captures=contender.kind == "graph")

    def _time_stock(self) -> Result:
        """Time OpenNMT-py."""
        model = self._size.stock(self._dropout).to(self._device.device)
        pad = self._size.vocabularies().target.pad
        step = StockStep(model, pad, LEARNING_RATE, self._device)
        return self._timed(step.take, warm=1, rounds=self._rounds())

    def _time_packed(self, alpha: str) -> Result:
        """Time this project without padding."""
        model = self._size.model(alpha, self._dropout).to(self._device.device)
        pad = self._size.vocabularies().target.pad
        step = PackedStep(model, pad, LEARNING_RATE, self._device)
        return self._timed(step.take, warm=1, rounds=self._rounds())

    def _rounds(self) -> int:
        """Return how often each batch is timed by contenders that nothing records."""
        return 1 if self._options.quick else 2

    def _timed(self, take: Callable[[Batch], None], warm: int, rounds: int) -> Result:
        """Return median and mean milliseconds of steps.

        Args:
            take: takes a step.
            warm: rounds over all batches before the timing.
            rounds: rounds over all batches that are timed.
        """
        for batch in self._batches * warm:
            take(batch)
        times = []
        for batch in self._batches * rounds:
            start = self._device.clock()
            take(batch)
            times.append(1000 * (self._device.clock() - start))
        return {
            "ms": round(statistics.median(times), 2),
            "mean_ms": round(statistics.mean(times), 2),
        }

    def _time_padded(self, alpha: str, *, captures: bool) -> Result:
        """Time this project on padded batches.

        Args:
            alpha: as `Size.model` takes it.
            captures: whether CUDA graphs are recorded; without them, on a GPU, the kernels of a
                step are timed, too.
        """
        if self._device.is_gpu:
            torch.cuda.reset_peak_memory_stats()
        size = self._size
        model = size.model(alpha, self._dropout).to(self._device.device)
        graphs = "on" if captures else "off"
        step = StaticStep(model, size.vocabularies(), Shapes(size.batch), LEARNING_RATE, graphs)
        started = time.perf_counter()
        warm, rounds = (self._options.warm, 3) if captures else (1, 1)
        row = self._timed(step.take, warm, rounds)
        loss, support = step.measured()
        row |= {
            "loss": round(loss, 3),
            "support": round(support, 1),
            "graphs": step.updates.recorder.captured,
            "seconds_in_all": round(time.perf_counter() - started, 1),
        }
        if captures:
            row["unwaited_ms"] = round(self._time_without_waits(step.take), 2)
        if self._device.is_gpu:
            row["gb"] = round(torch.cuda.max_memory_reserved() / 1e9, 2)
            if not captures:
                row |= _profile(step, self._batches)
        return row

    def _time_without_waits(self, take: Callable[[Batch], None]) -> float:
        """Return mean milliseconds of a step, if nothing waits between steps, as in training."""
        start = self._device.clock()
        for batch in self._batches:
            take(batch)
        return 1000 * (self._device.clock() - start) / len(self._batches)


def _profile(step: StaticStep, data: list[Batch]) -> Result:
    """Return the time of each kernel in a plain step, on the batch of median size."""
    from torch.profiler import ProfilerActivity, profile  # takes a second

    by_size = sorted(data, key=lambda batch: math.prod(step.shapes.of(batch)))
    batch = by_size[len(data) // 2]
    step.take(batch)
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as seen:
        step.take(batch)
        torch.cuda.synchronize()
    kernels = []  # name, milliseconds, calls
    for event in seen.key_averages():
        device_time = getattr(event, "self_device_time_total", 0)
        if device_time and str(getattr(event, "device_type", "")).endswith("CUDA"):
            kernels.append((event.key, device_time / 1000, event.count))
    kernels.sort(key=lambda kernel: -kernel[1])
    return {
        "shape": tuple(step.shapes.of(batch)),
        "kernels": sum(count for _, _, count in kernels),
        "kernels_ms": round(sum(ms for _, ms, _ in kernels), 2),
        "top": [
            {"kernel": name[:110], "ms": round(ms, 3), "count": count}
            for name, ms, count in kernels[:SLOWEST_KERNELS]
        ],
    }
