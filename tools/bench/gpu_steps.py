"""The times of training steps, for `gpu.py`: of OpenNMT-py, and of this project in three ways.

Each contender trains before it is timed, since the cost of entmax depends on the support. An error
of one is a row of the results, and the others are still timed.
"""

from __future__ import annotations

import math
import statistics
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch

from onmt_entmax.data.batch import Batch
from onmt_entmax.data.shapes import Shapes
from onmt_entmax.train.contexts import tf32_products
from tools.bench.gpu_contenders import PackedStep, StaticStep, Step, StockStep
from tools.bench.gpu_device import LONGEST_ERROR, Device, Result
from tools.bench.gpu_networks import Network
from tools.bench.gpu_sizes import Size

# OpenNMT-py; this project without padding, with padding, and with padding and CUDA graphs.
Kind = Literal["stock", "packed", "plain", "graph"]
BATCHES = 16  # different ones, on each of which a contender steps several times
BATCHES_ON_CPU = 3


@dataclass(frozen=True)
class Contender:
    """What takes steps.

    Attributes:
        kind: whose steps, and how they are taken.
        alpha: as `Network.our_model` takes it; of stock, only a name.
        tf32: whether products are in TF32.
    """

    kind: Kind
    alpha: str
    tf32: bool = False

    @property
    def name(self) -> str:
        """Name in the tables."""
        return f"{self.kind} {self.alpha}" + (" tf32" if self.tf32 else "")


def contenders_of(network: Network, device: Device) -> list[Contender]:
    """Return the contenders for steps of a network."""
    contenders = [
        Contender("stock", "softmax"),
        Contender("packed", "1.5"),
        Contender("plain", "1.5"),
        Contender("graph", "1.5"),
        Contender("graph", network.other_alpha),
        Contender("graph", "1"),
    ]
    if device.is_gpu:
        contenders.append(Contender("graph", "1.5", tf32=True))
    return contenders


def time_steps(device: Device, size: Size, quick: bool) -> Iterator[Result]:
    """Yield the time of a training step of each contender."""
    batches = size.batches(BATCHES if device.is_gpu else BATCHES_ON_CPU)
    for contender in contenders_of(size.network, device):
        row: Result = {
            "size": size.network.name,
            "pairs": size.pairs,
            "contender": contender.name,
        }
        try:
            with tf32_products(contender.tf32):
                step = _step_of(contender, size, device)
                row |= _time(step, contender.kind, batches, device, quick)
        except Exception as error:  # the others can still be useful
            traceback.print_exc()
            row |= {"ms": math.nan, "error": repr(error)[:LONGEST_ERROR], "ok": False}
        yield row
        if not device.works():
            return
        if device.is_gpu:
            torch.cuda.empty_cache()


def _step_of(contender: Contender, size: Size, device: Device) -> Step:
    """Return the steps of a contender, with a new model on the device."""
    network = size.network
    vocabularies = network.corpus.vocabularies
    pad = vocabularies.target.pad
    if contender.kind == "stock":
        return StockStep(network.stock_model(network.dropout).to(device.device), pad, device.device)
    model = network.our_model(contender.alpha, network.dropout).to(device.device)
    if contender.kind == "packed":
        return PackedStep(model, pad, device.device)
    graphs = "on" if contender.kind == "graph" else "off"
    return StaticStep(model, vocabularies, Shapes(size.pairs), graphs)


class _Rounds(NamedTuple):
    """How often a contender steps on each batch.

    Attributes:
        untimed: before the timing.
        timed: in it.
    """

    untimed: int
    timed: int


def _rounds_of(kind: Kind, quick: bool) -> _Rounds:
    """Return the rounds of a kind: fewer for slow ones; a graph is recorded in the second."""
    if kind == "graph":
        return _Rounds(untimed=3 if quick else 6, timed=3)
    if kind == "plain" or quick:
        return _Rounds(untimed=1, timed=1)
    return _Rounds(untimed=1, timed=2)


def _time(
    step: Step,
    kind: Kind,
    batches: Sequence[Batch],
    device: Device,
    quick: bool,
) -> Result:
    """Return the times of a contender's steps; of padded ones, also what they cost otherwise.

    Args:
        step: of the contender.
        kind: of the contender.
        batches: of source and target.
        device: where the model is.
        quick: whether there are fewer rounds.
    """
    if device.is_gpu:
        torch.cuda.reset_peak_memory_stats()
    started = time.perf_counter()
    row = _milliseconds(step.take, batches, _rounds_of(kind, quick), device)
    if not isinstance(step, StaticStep):
        return row
    loss, support = step.measured()
    row |= {
        "loss": round(loss, 3),
        "support": round(support, 1),
        "graphs": step.updates.recorder.captured,
        "seconds_in_all": round(time.perf_counter() - started, 1),
    }
    if kind == "graph":
        row["unwaited_ms"] = round(_milliseconds_without_waits(step.take, batches, device), 2)
    if device.is_gpu:
        row["gb"] = round(torch.cuda.max_memory_reserved() / 1e9, 2)
    return row


def _milliseconds(
    take: Callable[[Batch], None], batches: Sequence[Batch], rounds: _Rounds, device: Device
) -> Result:
    """Return median and mean milliseconds of steps, with waits around each."""
    for batch in [*batches] * rounds.untimed:
        take(batch)
    times = []
    for batch in [*batches] * rounds.timed:
        start = device.clock()
        take(batch)
        times.append(1000 * (device.clock() - start))
    return {
        "ms": round(statistics.median(times), 2),
        "mean_ms": round(statistics.mean(times), 2),
    }


def _milliseconds_without_waits(
    take: Callable[[Batch], None], batches: Sequence[Batch], device: Device
) -> float:
    """Return mean milliseconds of a step, if nothing waits between steps, as in training."""
    start = device.clock()
    for batch in batches:
        take(batch)
    return 1000 * (device.clock() - start) / len(batches)
