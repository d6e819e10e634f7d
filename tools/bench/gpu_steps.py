"""Training steps for `gpu.py`: sizes, the device's clock, contenders and their times."""

from __future__ import annotations

import argparse
import math
import statistics
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from onmt_entmax.config import OptimizerConfig, TrainingConfig
from onmt_entmax.data.batch import Batch, Shapes
from onmt_entmax.model import SparseNMTModel
from onmt_entmax.opennmt import NMTModel, TransformerEncoder
from onmt_entmax.train.contexts import tf32_products
from onmt_entmax.train.update import Update
from tools.bench import batches as text
from tools.bench import transformer
from tools.bench.contenders import (
    MAX_GRAD_NORM,
    OurContender,
    StockContender,
    our_model,
    stock_model,
)

LEARNING_RATE = 1e-3
Result = dict[str, Any]


@dataclass(frozen=True)
class Size:
    """A model and its batches.

    Attributes:
        name: name in the tables.
        hidden: size of each layer.
        vocabulary: largest number of tokens.
        batch: sentence pairs of a batch.
        read: reads the pairs.
        joint: whether source and target share their vocabulary.
        transformer: the sizes of a Transformer; None: an LSTM of two layers.
    """

    name: str
    hidden: int
    vocabulary: int
    batch: int
    read: Callable[[Path | None], list[text.Pair]]
    joint: bool
    transformer: transformer.Size | None = None

    def vocabularies(self) -> Any:
        """Return the vocabularies."""
        return text.vocabularies(self.read(None), self.vocabulary, self.joint)

    def model(self, alpha: str, dropout: float) -> SparseNMTModel:
        """Return our model; those of all alphas have the same weights."""
        vocabularies = self.vocabularies()
        if self.transformer is not None:
            return transformer.model_of(alpha, vocabularies, self.transformer, 1.0, dropout)
        torch.manual_seed(1)
        return our_model(stock_model(self.hidden, vocabularies, dropout), float(alpha), None)

    def stock(self, dropout: float) -> NMTModel:
        """Return OpenNMT-py's model, with softmax."""
        if self.transformer is None:
            torch.manual_seed(1)
            return stock_model(self.hidden, self.vocabularies(), dropout)
        model: Any = self.model("stock", dropout)
        model.encoder.__class__ = TransformerEncoder
        linear = nn.Linear(self.hidden, self.vocabulary)
        linear.weight, linear.bias = model.generator.weight, model.generator.bias
        model.generator = nn.Sequential(linear, nn.LogSoftmax(dim=-1))
        return model


SIZES = (
    Size("2x300 V=776", 300, 776, 64, text.inflection, True),
    Size("2x300 V=776", 300, 776, 256, text.inflection, True),
    Size("2x500 V=18,000", 500, 18_000, 256, text.words, False),
    # 4,100 target tokens a step.
    Size("Transformer base", 512, 32_000, 164, text.sentences, True, transformer.SIZES["base"]),
)
SMALL = (
    Size("2x24 V=776", 24, 776, 16, text.inflection, True),
    Size("tiny Transformer", 32, 776, 16, text.inflection, True, transformer.SIZES["tiny"]),
)


class Device:
    """A device and its clock."""

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

    def ways(self, run: Callable[[], object]) -> Iterator[tuple[str, Callable[[], object]]]:
        """Yield a function as it is and, on a GPU, captured: a replay starts it without Python."""
        yield "as written", run
        if self.is_gpu:
            stream = torch.cuda.Stream()
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):  # kernels compile before they are captured
                run()
            torch.cuda.current_stream().wait_stream(stream)
            graph = torch.cuda.CUDAGraph()
            try:
                with torch.cuda.graph(graph):
                    run()
            except RuntimeError:  # the first row can still be useful
                traceback.print_exc()
            else:
                yield "CUDA graph", graph.replay


# --- contenders ---


class PackedStep(OurContender):
    """Steps of this project without padding."""

    def __init__(self, model: SparseNMTModel, pad: int, rate: float, device: Device) -> None:
        super().__init__(model, pad, rate)
        self._device = device.device

    def take(self, batch: Batch) -> None:
        """Take a step."""
        self.optimizer.zero_grad()
        batch = batch.to(self._device)
        result = self.loss_of(batch)
        (result.loss / len(batch)).backward()
        self.update()


class StockStep(StockContender):
    """Steps of OpenNMT-py's model and loss."""

    def __init__(self, model: NMTModel, pad: int, rate: float, device: Device) -> None:
        super().__init__(model, pad, rate, stock_optimizer=False)
        self._device = device.device

    def take(self, batch: Batch) -> None:
        """Take a step; OpenNMT-py needs lengths on the device, too."""
        self.optimizer.zero_grad()
        moved = batch.to(self._device)
        moved = replace(moved, target_lengths=batch.target_lengths)
        self.backward_of(moved)
        self.update()

    def backward_of(self, batch: Batch) -> None:
        """Run forward and backward pass, without reading the loss."""
        outputs, attentions = self.model(batch.source, batch.target, batch.source_lengths)
        stock_batch = SimpleNamespace(tgt=batch.target)  # what NMTLossCompute reads of a batch
        loss, _ = self.loss_compute(stock_batch, outputs, attentions, normalization=len(batch))
        loss.backward()


class StaticStep:
    """Steps of this project on padded batches, with graphs or without."""

    def __init__(
        self, model: SparseNMTModel, vocabularies: Any, shapes: Shapes, rate: float, graphs: str
    ) -> None:
        optimizer = torch.optim.Adam(model.parameters(), rate, fused=True)
        pads = vocabularies.source.pad, vocabularies.target.pad
        clipped = OptimizerConfig(max_grad_norm=MAX_GRAD_NORM)
        config = TrainingConfig(clipped, cuda_graphs=graphs)
        self.updates = Update(model, optimizer, config, pads, shapes)
        self.shapes = shapes
        self.rate = rate
        self.report: Tensor | None = None

    def take(self, batch: Batch) -> None:
        """Take a step."""
        self.updates.add(batch, len(batch))
        self.report = self.updates.step((self.rate,))

    def measured(self) -> tuple[float, float]:
        """Return the last step's loss and support per token."""
        assert self.report is not None
        loss, tokens, _, support, *_ = self.report.tolist()
        return loss / tokens, support / tokens


# --- training steps ---


def data_of(size: Size, count: int) -> list[Batch]:
    """Return so many batches of a size."""
    stream = text.batches(size.read(None), size.vocabularies(), size.batch, 16 * size.batch)
    return list(islice(stream, count))


def time_steps(device: Device, size: Size, options: argparse.Namespace) -> Iterator[Result]:
    """Yield the time of a training step of each contender."""
    data = data_of(size, options.batches)
    names = ["stock softmax", "packed 1.5", "plain 1.5", "graph 1.5"]
    names += ["graph learned" if size.transformer else "graph 1.33", "graph 1"]
    names += ["graph 1.5 tf32"] if device.is_gpu else []
    for name in names:
        kind, alpha, *tf32 = name.split()
        if kind not in options.contenders:
            continue
        row: Result = {"size": size.name, "pairs": size.batch, "contender": name}
        try:
            with tf32_products(bool(tf32)):
                row |= _time_contender(device, size, options, data, kind, alpha)
        except Exception as error:  # the others can still be useful
            traceback.print_exc()
            row |= {"ms": math.nan, "error": repr(error)[:300]}
        yield row
        if not device.works():
            return
        if device.is_gpu:
            torch.cuda.empty_cache()


def _time_contender(
    device: Device,
    size: Size,
    options: argparse.Namespace,
    data: list[Batch],
    kind: str,
    alpha: str,
) -> Result:
    """Return the times of a contender's steps; `kind` is the first word of its name."""
    dropout = 0.1 if size.transformer else 0.3
    if kind in ("stock", "packed"):
        pad = size.vocabularies().target.pad
        step: StockStep | PackedStep
        if kind == "stock":
            step = StockStep(size.stock(dropout).to(device.device), pad, LEARNING_RATE, device)
        else:
            model = size.model(alpha, dropout).to(device.device)
            step = PackedStep(model, pad, LEARNING_RATE, device)
        return _timed(device, step.take, data, 1, 1 if options.quick else 2)
    return _time_static(device, size, options, data, kind == "graph", alpha, dropout)


def _timed(
    device: Device, take: Callable[[Batch], None], data: list[Batch], warm: int, rounds: int
) -> Result:
    """Return median and mean milliseconds of steps, after so many rounds that are not timed."""
    for batch in data * warm:
        take(batch)
    times = []
    for batch in data * rounds:
        start = device.clock()
        take(batch)
        times.append(1000 * (device.clock() - start))
    return {
        "ms": round(statistics.median(times), 2),
        "mean_ms": round(statistics.mean(times), 2),
    }


def _time_static(
    device: Device,
    size: Size,
    options: argparse.Namespace,
    data: list[Batch],
    captures: bool,
    alpha: str,
    dropout: float,
) -> Result:
    """Return the times of steps on padded batches, captured in CUDA graphs or not."""
    if device.is_gpu:
        torch.cuda.reset_peak_memory_stats()
    model = size.model(alpha, dropout).to(device.device)
    graphs = "on" if captures else "off"
    stepper = StaticStep(model, size.vocabularies(), Shapes(size.batch), LEARNING_RATE, graphs)
    started = time.perf_counter()
    warm, rounds = (options.warm, 3) if captures else (1, 1)
    row = _timed(device, stepper.take, data, warm, rounds)
    loss, support = stepper.measured()
    row |= {"loss": round(loss, 3), "support": round(support, 1)}
    row |= {"graphs": stepper.updates.recorder.captured}
    row |= {"seconds_in_all": round(time.perf_counter() - started, 1)}
    if captures:
        # As in training, no waits between steps.
        start = device.clock()
        for batch in data:
            stepper.take(batch)
        row["unwaited_ms"] = round(1000 * (device.clock() - start) / len(data), 2)
    if device.is_gpu:
        row["gb"] = round(torch.cuda.max_memory_reserved() / 1e9, 2)
        if not captures:
            row |= _profile(stepper, data)
    return row


def _profile(stepper: StaticStep, data: list[Batch]) -> Result:
    """Profile a plain step on the batch of median size by kernel."""
    from torch.profiler import ProfilerActivity, profile

    by_size = sorted(data, key=lambda batch: math.prod(stepper.shapes.of(batch)))
    batch = by_size[len(data) // 2]
    stepper.take(batch)
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as seen:
        stepper.take(batch)
        torch.cuda.synchronize()
    rows = []
    for event in seen.key_averages():
        device_time = getattr(event, "self_device_time_total", 0)
        if device_time and str(getattr(event, "device_type", "")).endswith("CUDA"):
            rows.append((event.key, device_time / 1000, event.count))
    rows.sort(key=lambda row: -row[1])
    return {
        "shape": tuple(stepper.shapes.of(batch)),
        "kernels": sum(row[2] for row in rows),
        "kernels_ms": round(sum(row[1] for row in rows), 2),
        "top": [
            {"kernel": kernel[:110], "ms": round(ms, 3), "count": count}
            for kernel, ms, count in rows[:30]
        ],
    }
