"""Time training steps on a GPU, for `gpu.py`, which names the variants.

Each variant trains before it is timed, since the cost of entmax depends on the support. If one
fails, its error is a row of the results, and the others are still timed.
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
from onmt_entmax.train.tf32 import tf32_products
from tools.bench.gpu_contenders import PackedStep, StaticStep, Step, StockStep
from tools.bench.gpu_device import LONGEST_ERROR, Device, Result
from tools.bench.gpu_networks import Network
from tools.bench.gpu_sizes import Size

# OpenNMT-py's steps; ours without padding, with padding, and with padding and CUDA graphs.
Kind = Literal["stock", "packed", "plain", "graph"]
BATCHES = 16  # different batches, each of which is trained on in every round
BATCHES_ON_CPU = 3


class Rounds(NamedTuple):
    """How often steps are taken on all batches.

    Attributes:
        untimed: rounds before the timing.
        timed: rounds in the timing.
    """

    untimed: int
    timed: int


@dataclass(frozen=True)
class StepVariant:
    """A way to take training steps.

    Attributes:
        kind: whose steps these are, and how they are taken.
        alpha: alpha for `Network.our_model`; only a name if the kind is "stock".
        tf32: whether matrix products are in TF32.
    """

    kind: Kind
    alpha: str
    tf32: bool = False

    @property
    def name(self) -> str:
        """Name in the tables."""
        return f"{self.kind} {self.alpha}" + (" tf32" if self.tf32 else "")

    def rounds(self, quick: bool) -> Rounds:
        """Return the rounds: fewer of slow kinds, and enough to capture a graph, in the second."""
        if self.kind == "graph":
            return Rounds(untimed=3 if quick else 6, timed=3)
        if self.kind == "plain" or quick:
            return Rounds(untimed=1, timed=1)
        return Rounds(untimed=1, timed=2)

    def step(self, size: Size, device: Device) -> Step:
        """Return steps of a new model of a size on the device."""
        network = size.network
        vocabularies = network.corpus.vocabularies
        pad = vocabularies.target.pad
        if self.kind == "stock":
            return StockStep(
                network.stock_model(network.dropout).to(device.device), pad, device.device
            )
        model = network.our_model(self.alpha, network.dropout).to(device.device)
        if self.kind == "packed":
            return PackedStep(model, pad, device.device)
        graphs = "on" if self.kind == "graph" else "off"
        return StaticStep(model, vocabularies, Shapes(size.pairs), graphs)


def variants_of(network: Network, device: Device) -> list[StepVariant]:
    """Return the variants to time with a network."""
    variants = [
        StepVariant("stock", "softmax"),
        StepVariant("packed", "1.5"),
        StepVariant("plain", "1.5"),
        StepVariant("graph", "1.5"),
        StepVariant("graph", network.other_alpha),
        StepVariant("graph", "1"),
    ]
    if device.is_gpu:
        variants.append(StepVariant("graph", "1.5", tf32=True))
    return variants


def time_steps(device: Device, size: Size, quick: bool) -> Iterator[Result]:
    """Yield the time of a training step of each variant.

    Args:
        device: where the models are.
        size: network and batches.
        quick: whether to run fewer rounds.
    """
    batches = size.batches(BATCHES if device.is_gpu else BATCHES_ON_CPU)
    for variant in variants_of(size.network, device):
        row: Result = {"size": size.network.name, "pairs": size.pairs, "contender": variant.name}
        try:
            with tf32_products(variant.tf32):
                row |= _time(
                    variant.step(size, device),
                    batches,
                    device,
                    variant.rounds(quick),
                    also_without_waits=variant.kind == "graph",
                )
        except Exception as error:  # the others can still be useful
            traceback.print_exc()
            row |= {"ms": math.nan, "error": repr(error)[:LONGEST_ERROR], "ok": False}
        yield row
        if not device.works():
            return
        if device.is_gpu:
            torch.cuda.empty_cache()


def _time(
    step: Step,
    batches: Sequence[Batch],
    device: Device,
    rounds: Rounds,
    *,
    also_without_waits: bool,
) -> Result:
    """Return the times of steps; if they have a report, also that, and the memory of the GPU.

    Args:
        step: takes the steps.
        batches: sentence pairs, on the CPU.
        device: where the model is.
        rounds: how often steps are taken on all batches.
        also_without_waits: whether to time steps once more, without waits between them.
    """
    if device.is_gpu:
        torch.cuda.reset_peak_memory_stats()
    started = time.perf_counter()
    row = _milliseconds(step.take, batches, rounds, device)
    report = step.report()
    if not report:
        return row
    row |= {**report, "seconds_in_all": round(time.perf_counter() - started, 1)}
    if also_without_waits:
        row["unwaited_ms"] = round(_milliseconds_without_waits(step.take, batches, device), 2)
    if device.is_gpu:
        row["gb"] = round(torch.cuda.max_memory_reserved() / 1e9, 2)
    return row


def _milliseconds(
    take: Callable[[Batch], None], batches: Sequence[Batch], rounds: Rounds, device: Device
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
    """Return mean milliseconds of a step if Python does not wait between steps, as in training."""
    start = device.clock()
    for batch in batches:
        take(batch)
    return 1000 * (device.clock() - start) / len(batches)
