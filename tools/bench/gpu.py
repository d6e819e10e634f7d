"""Check and time training on a GPU, beside stock OpenNMT-py.

    python -m tools.bench.gpu --quick

The checks compare kernels with float64 on the CPU, and CUDA graphs with plain updates. The tables
time training steps of this project (packed, padded, padded with CUDA graphs) and of stock
OpenNMT-py with softmax on the same batches, then losses, mappings and attention, beside entmax 1.3
and AdaSplash where they are installed, the LSTM encoder beside cuDNN's, and decoding. A step copies
the batch to the GPU and runs forward and backward pass, clipping and fused Adam, with the GPU
synchronised around it. Times are medians in milliseconds. Each contender trains before it is timed,
since the cost of entmax depends on the support. The alphas of a Transformer are those of its
attention; its output is softmax. Decoding lists all words whose output or certificate differs from
the CPU's.

`--device cpu --quick` is a smoke test with small models. Everything goes to a JSON file
(`--output`), the tables to one screen. If a part leaves the GPU unusable, a new process runs the
rest.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from onmt_entmax.data.batch import Batch
from onmt_entmax.data.shapes import PaddedBatch, Shapes, views
from onmt_entmax.model import SparseNMTModel
from onmt_entmax.nn.attention import EntmaxGlobalAttention
from onmt_entmax.nn.lstm.static import static_encode
from onmt_entmax.nn.output import OutputLayer
from onmt_entmax.nn.static_loss import static_loss
from onmt_entmax.opennmt import NMTModel, TransformerEncoder
from onmt_entmax.sparse.backends import kernels_start
from onmt_entmax.sparse.functional import entmax, entmax_loss
from onmt_entmax.train.graphs import PaddedUpdates, UpdateConfig, padded_outputs
from onmt_entmax.train.trainer import frozen_heap, tf32_products
from onmt_entmax.train.transfer import Transfer
from onmt_entmax.translator import Translator
from tools.bench import batches as text
from tools.bench import transformer
from tools.bench.attention import installed
from tools.bench.attention import table as time_attention
from tools.bench.contenders import Contender, StockContender, our_model, stock_model

MAX_GRAD_NORM = 5.0
LEARNING_RATE = 1e-3
MODEL = Path(__file__).resolve().parent.parent.parent / "data" / "models" / "inflection-86"
TOGETHER = 1024  # words decoded in a batch
LOSSES = "loss, forward and backward, over cross-entropy"
MAPPINGS = "mapping, forward and backward, over softmax"
ENCODER = "LSTM encoder, forward and backward, over torch.nn.LSTM on padded batches"
DECODING = "decoding, 2x512, beam 5; the CPU's outputs and certificates"
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

    def known(self) -> Any:
        """Return the vocabularies."""
        return text.vocabularies(self.read(None), self.vocabulary, self.joint)

    def model(self, alpha: str, dropout: float) -> SparseNMTModel:
        """Return our model; those of all alphas have the same weights."""
        known = self.known()
        if self.transformer is not None:
            return transformer.model_of(alpha, known, self.transformer, 1.0, dropout)
        torch.manual_seed(1)
        return our_model(stock_model(self.hidden, known, dropout), float(alpha), None)

    def stock(self, dropout: float) -> NMTModel:
        """Return OpenNMT-py's model, with softmax."""
        if self.transformer is None:
            torch.manual_seed(1)
            return stock_model(self.hidden, self.known(), dropout)
        model = self.model("stock", dropout)
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


class PackedStep(Contender):
    """Steps of this project without padding."""

    def __init__(self, model: SparseNMTModel, pad: int, rate: float, device: Device) -> None:
        super().__init__(model, pad, rate)
        self._transfer = Transfer(device.device)

    def take(self, batch: Batch) -> None:
        """Take a step."""
        self.optimizer.zero_grad()
        batch = self._transfer(batch)
        assert batch.target_lengths is not None
        result = self.loss_of(batch)
        (result.loss / len(batch)).backward()
        self.update()


class StockStep(StockContender):
    """Steps of OpenNMT-py's model and loss."""

    def __init__(self, model: NMTModel, pad: int, rate: float, device: Device) -> None:
        super().__init__(model, pad, rate, own_adam=False)
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
        named = SimpleNamespace(tgt=batch.target)
        loss, _ = self.loss_compute(named, outputs, attentions, normalization=len(batch))
        loss.backward()


class StaticStep:
    """Steps of this project on padded batches, with graphs or without."""

    def __init__(
        self, model: SparseNMTModel, known: Any, shapes: Shapes, rate: float, graphs: str
    ) -> None:
        optimizer = torch.optim.Adam(model.parameters(), rate, fused=True)
        pads = known.source.pad, known.target.pad
        config = UpdateConfig(MAX_GRAD_NORM, graphs=graphs)
        self.updates = PaddedUpdates(model, optimizer, config, shapes, pads)
        self.rate = rate
        self.report: Tensor | None = None

    def take(self, batch: PaddedBatch) -> None:
        """Take a step."""
        self.updates.accumulate(batch, 1 / len(batch.batch))
        self.report = self.updates.finish(self.rate)

    def measured(self) -> tuple[float, float]:
        """Return the last step's loss and support per token."""
        assert self.report is not None
        loss, tokens, _, support, _ = self.report.tolist()
        return loss / tokens, support / tokens


# --- checks ---


def _distance(found: Tensor, expected: Tensor, least: float = 1e-30) -> float:
    """Return the largest difference relative to the largest value, or `least`; infinite for nan."""
    expected = expected.detach()
    scale = float(expected.abs().max().clamp_min(least))
    distance = float((found - expected).abs().max()) / scale
    return distance if distance == distance else float("inf")


def check_loss(device: Device, quick: bool) -> Iterator[Result]:
    """Compare the static loss with `OutputLayer.loss` in float64 on the CPU."""
    torch.manual_seed(0)
    sizes = [(300, 776, 24)] if not device.is_gpu else [(4096, 776, 300), (640, 18_000, 300)]
    for rows, vocabulary, hidden in sizes:
        for alpha in (1.0, 1.05, 1.33, 1.5, 2.0):
            if alpha == 1.05 and vocabulary > 10_000 and quick:
                continue
            for spread in (1.0, 8.0):
                exact = OutputLayer(hidden, vocabulary, alpha).double()
                torch.nn.init.normal_(exact.weight, 0, hidden**-0.5)
                states = torch.randn(rows, hidden, dtype=torch.float64) * spread
                target = torch.randint(vocabulary, (rows,))
                target[::5] = 1
                layer = OutputLayer(hidden, vocabulary, alpha)
                layer.load_state_dict(exact.state_dict())
                layer.to(device.device)
                here = states.float().to(device.device).requires_grad_()
                found = static_loss(layer, here, target.to(device.device), 1)
                grads = torch.autograd.grad(found.loss, [here, layer.weight, layer.bias])
                exact.load_state_dict(layer.state_dict())
                there = here.detach().cpu().double().requires_grad_()
                expected = exact.loss(there, target, 1)
                wanted = torch.autograd.grad(expected.loss, [there, exact.weight, exact.bias])
                worst = max(
                    _distance(x.cpu().double(), y) for x, y in zip(grads, wanted, strict=True)
                )
                worst = max(worst, _distance(found.loss.detach().cpu().double(), expected.loss))
                support = abs(float(found.support) / float(expected.support) - 1)
                what = f"loss {rows}x{vocabulary} alpha {alpha} spread {spread:g}"
                yield {"what": what, "error": worst, "support": support, "ok": worst < 1e-4}


def check_updates(device: Device, size: Size) -> Iterator[Result]:
    """Compare padded models with unpadded ones in float64 on the CPU."""
    alphas = ("1.5", "1", "learned") if size.transformer else ("1.5", "1.33", "1", "mlp 1.5")
    for name in alphas:
        kind, _, alpha = name.rpartition(" ")
        known = size.known()
        model = size.model(alpha, 0.0)
        if kind == "mlp":
            model.decoder.attn = EntmaxGlobalAttention(size.hidden, kind, float(alpha))
        model = model.double()
        batch = next(text.batches(size.read(None), known, min(size.batch, 32), 512))
        hidden, target = model.hidden_states(batch)
        expected = model.generator.loss(hidden, target, known.target.pad).loss
        parameters = list(model.parameters())
        wanted = torch.autograd.grad(expected, parameters)
        # The biases of a Transformer's keys have no gradient but for rounding.
        least = 1e-3 * max(float(grad.abs().max()) for grad in wanted)
        # The attention kernels of Transformers take no float64.
        for dtype, bound in ((torch.float64, 1e-9), (torch.float32, 1e-3)):
            moved = model.to(device.device, dtype)
            padded = StaticStep(moved, known, Shapes(len(batch)), 0.0, "off").updates.pad(batch)
            ids, target, lengths = views(padded.ids.to(device.device), padded.shape)
            outputs = padded_outputs(moved, ids, target, lengths)
            loss = static_loss(
                moved.generator, outputs.flatten(0, 1), target[1:].flatten(), known.target.pad
            ).loss
            found = torch.autograd.grad(loss, list(moved.parameters()))
            pairs = zip(found, wanted, strict=True)
            worst = max(_distance(x.cpu().double(), y, least) for x, y in pairs)
            worst = max(worst, _distance(loss.detach().cpu().double(), expected.detach()))
            what = f"update {size.name} alpha {name} {dtype}"
            yield {"what": what, "error": worst, "ok": worst < bound}


def check_graphs(device: Device, size: Size, data: list[Batch]) -> Result:
    """Compare the first replay of every graph with a plain update, with dropout."""
    torch.manual_seed(3)
    model = size.model("learned" if size.transformer else "1.5", 0.3).to(device.device)
    step = StaticStep(model, size.known(), Shapes(size.batch), LEARNING_RATE, "check")
    padded = [step.updates.pad(batch) for batch in data]
    what = f"graphs {size.name} {size.batch} pairs"
    try:
        for _ in range(3):
            for batch in padded:
                step.take(batch)
    except Exception as error:
        return {"what": what, "error": str(error), "ok": False}
    graphs = step.updates.captured
    finite = bool(torch.isfinite(step.updates.gradient).all())
    return {"what": what, "error": 0.0, "graphs": graphs, "ok": finite and graphs > 0}


# --- training steps ---


def _data(size: Size, count: int) -> list[Batch]:
    stream = text.batches(size.read(None), size.known(), size.batch, 16 * size.batch)
    return list(islice(stream, count))


def time_steps(device: Device, size: Size, options: argparse.Namespace) -> Iterator[Result]:
    """Yield the time of a training step of each contender."""
    data = _data(size, options.batches)
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
    pad, dropout = size.known().target.pad, 0.1 if size.transformer else 0.3

    def timed(take: Callable[[Any], None], items: list[Any], warm: int, rounds: int) -> Result:
        for item in items * warm:
            take(item)
        times = []
        for item in items * rounds:
            start = device.clock()
            take(item)
            times.append(1000 * (device.clock() - start))
        return {
            "ms": round(statistics.median(times), 2),
            "mean_ms": round(statistics.mean(times), 2),
        }

    if kind in ("stock", "packed"):
        step: StockStep | PackedStep
        if kind == "stock":
            step = StockStep(size.stock(dropout).to(device.device), pad, LEARNING_RATE, device)
        else:
            model = size.model(alpha, dropout).to(device.device)
            step = PackedStep(model, pad, LEARNING_RATE, device)
        return timed(step.take, data, 1, 1 if options.quick else 2)
    if device.is_gpu:
        torch.cuda.reset_peak_memory_stats()
    captures = kind == "graph"
    model = size.model(alpha, dropout).to(device.device)
    graphs = "on" if captures else "off"
    stepper = StaticStep(model, size.known(), Shapes(size.batch), LEARNING_RATE, graphs)
    padded = [stepper.updates.pad(batch) for batch in data]
    started = time.perf_counter()
    row = timed(stepper.take, padded, options.warm if captures else 1, 3 if captures else 1)
    loss, support = stepper.measured()
    row |= {"loss": round(loss, 3), "support": round(support, 1)}
    row |= {"graphs": stepper.updates.captured}
    row |= {"seconds_in_all": round(time.perf_counter() - started, 1)}
    if captures:
        # As in training, no waits between steps.
        start = device.clock()
        for batch in padded:
            stepper.take(batch)
        row["unwaited_ms"] = round(1000 * (device.clock() - start) / len(padded), 2)
    if device.is_gpu:
        row["gb"] = round(torch.cuda.max_memory_reserved() / 1e9, 2)
        if not captures:
            row |= _profile(stepper, padded)
    return row


def _profile(stepper: StaticStep, padded: list[PaddedBatch]) -> Result:
    """Profile a plain step on the batch of median size by kernel."""
    from torch.profiler import ProfilerActivity, profile

    batch = sorted(padded, key=lambda b: b.ids.numel())[len(padded) // 2]
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
        "shape": tuple(batch.shape),
        "kernels": sum(row[2] for row in rows),
        "kernels_ms": round(sum(row[1] for row in rows), 2),
        "top": [{"kernel": k[:110], "ms": round(t, 3), "count": n} for k, t, n in rows[:30]],
    }


# --- losses and mappings ---


def time_losses(device: Device, quick: bool) -> Iterator[Result]:
    """Time forward and backward pass of the loss, relative to cross-entropy."""
    sizes = [(1280, 776), (1280, 18_000), (4096, 32_000)] if device.is_gpu else [(64, 776)]
    losses: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
        f"alpha {alpha:g}": partial(entmax_loss, alpha=alpha) for alpha in (1.2, 1.5, 2.0)
    }
    losses = {"cross_entropy_ms": functional.cross_entropy, **losses}
    peer = installed("entmax")
    for rows, classes in sizes:
        for dtype in (torch.float32, torch.bfloat16):
            torch.manual_seed(0)
            scores = torch.randn(rows, classes, device=device.device, dtype=dtype)
            scores.requires_grad_()
            target = torch.randint(classes, (rows,), device=device.device)

            def run(
                loss: Callable[[Tensor, Tensor], Tensor],
                scores: Tensor = scores,
                y: Tensor = target,
            ) -> None:
                scores.grad = None
                loss(scores, y).backward()

            given = {"rows": rows, "classes": classes, "dtype": str(dtype).removeprefix("torch.")}
            calls = {name: partial(run, loss) for name, loss in losses.items()}
            peers: dict[str, Callable[[], None]] = {}
            if peer is not None and dtype == torch.float32:
                by_sorting = partial(_mean, partial(peer.entmax15_loss, k=100))
                by_bisection = partial(_mean, partial(peer.entmax_bisect_loss, alpha=1.5))
                peers["entmax15 k=100"] = partial(run, by_sorting)
                peers["bisection 1.5"] = partial(run, by_bisection)
            yield from _relative(device, calls, peers, given, 20 if quick else 50)


def _mean(losses: Callable[[Tensor, Tensor], Tensor], scores: Tensor, target: Tensor) -> Tensor:
    """Return the mean of the losses of rows."""
    return losses(scores, target).mean()


def time_mappings(device: Device, quick: bool) -> Iterator[Result]:
    """Time the mapping relative to softmax, with one alpha or one for each row."""
    sizes = [(2560, 50), (65_536, 512), (1280, 18_000)] if device.is_gpu else [(64, 50)]
    peer = installed("entmax")
    for rows, classes in sizes:
        torch.manual_seed(0)
        scores = torch.randn(rows, classes, device=device.device).requires_grad_()
        incoming = torch.randn(rows, classes, device=device.device)
        alphas = torch.full((rows, 1), 1.5, device=device.device).requires_grad_()

        def run(
            mapping: Callable[[Tensor], Tensor], s: Tensor = scores, g: Tensor = incoming
        ) -> None:
            s.grad = None
            mapping(s).backward(g)

        calls = {
            "softmax_ms": partial(run, partial(torch.softmax, dim=-1)),
            "alpha 1.33": partial(run, partial(entmax, alpha=1.33)),
            "alpha 1.5": partial(run, partial(entmax, alpha=1.5)),
            "learned": partial(run, partial(entmax, alpha=alphas)),
        }
        peers: dict[str, Callable[[], None]] = {}
        if peer is not None:
            peers["entmax15"] = partial(run, partial(peer.entmax15, dim=-1))
            peers["bisection 1.5"] = partial(run, partial(peer.entmax_bisect, alpha=1.5, dim=-1))
        given = {"rows": rows, "classes": classes}
        yield from _relative(device, calls, peers, given, 10 if quick else 30)


def _relative(
    device: Device,
    calls: Mapping[str, Callable[[], None]],
    peers: Mapping[str, Callable[[], None]],
    given: Result,
    repeats: int,
) -> Iterator[Result]:
    """Yield a row for each way to run calls: the first's milliseconds, the others' ratios to it.

    The peers are those of entmax 1.3, which read values back and cannot be captured.
    """
    times: dict[str, dict[str, float]] = {}
    for name, call in calls.items():
        for way, run in device.ways(call):
            times.setdefault(way, {})[name] = device.median(run, repeats)
    for name, run in peers.items():
        times["as written"][name] = device.median(run, repeats // 2)
    reference, *others = calls
    for way, taken in times.items():
        base = taken.get(reference, float("nan"))
        ratios = {name: round(taken.get(name, float("nan")) / base, 2) for name in others}
        ratios |= {name: round(taken[name] / base, 2) for name in peers if name in taken}
        yield {
            **given,
            "run": way,
            reference: round(base, 3),
            **ratios,
            "ok": all(name in taken for name in calls),
        }


def time_encoder(device: Device, quick: bool) -> Iterator[Result]:
    """Time the encoder's loop of steps, forward and backward, relative to the peer's kernels.

    These (cuDNN on a GPU) take padding for tokens, so they do a little less.
    """
    for size in SIZES[1:3] if device.is_gpu else SMALL[:1]:
        encoder = size.model("1.5", 0.0).encoder.to(device.device)
        source = torch.randint(size.vocabulary, (24, size.batch), device=device.device)
        lengths = torch.randint(1, 25, (size.batch,), device=device.device)
        incoming = torch.randn(24, size.batch, size.hidden, device=device.device)
        weights = list(encoder.parameters())

        def run(
            encode: Callable[[], Tensor], weights: list[Tensor] = weights, g: Tensor = incoming
        ) -> None:
            torch.autograd.grad(encode(), weights, g)

        def loop(e: Any = encoder, ids: Tensor = source, n: Tensor = lengths) -> Tensor:
            return static_encode(e, ids, n, None)[1]

        def peer(e: Any = encoder, ids: Tensor = source) -> Tensor:
            outputs: Tensor = e.rnn(e.embeddings(ids.unsqueeze(2)))[0]
            return outputs

        calls = {"torch_ms": partial(run, peer), "loop": partial(run, loop)}
        given = {"size": size.name, "tokens": 24, "pairs": size.batch}
        yield from _relative(device, calls, {}, given, 10 if quick else 30)


# --- decoding ---


def time_decoding(device: Device, quick: bool) -> Iterator[Result]:
    """Decode words with a beam of 5, and compare outputs and certificates with the CPU's."""
    lines = [" ".join(source) for source, _ in text.inflection(None)]
    lines = lines if device.is_gpu else lines[::100]
    sample = lines[:: 4 if quick else 1]
    here = Translator.from_folders(MODEL, device=device.device)
    list(here.answers(lines, TOGETHER))  # compiles the kernels of all numbers of rows and lengths
    with frozen_heap():  # as the command line does when it starts
        start = device.clock()
        answers = list(here.answers(lines, TOGETHER))
        seconds = device.clock() - start
    found = {answer.source: answer for answer in answers}
    cases, furthest = [], 0.0
    for expected in Translator.from_folders(MODEL).answers(sample, TOGETHER // 4):
        pair = [
            (answer.result.certificate.level, [each.text for each in answer.hypotheses])
            for answer in (found[expected.source], expected)
        ]
        if pair[0] != pair[1]:
            cases.append({"source": expected.source, "here": pair[0], "cpu": pair[1]})
        elif expected.hypotheses:
            one, other = (a.result.hypotheses[0] for a in (found[expected.source], expected))
            furthest = max(furthest, abs(one.log_prob - other.log_prob))
    yield {
        "words": len(lines),
        "words_a_second": round(len(lines) / seconds),
        "compared": len(sample),
        "differ": len(cases),
        "log_prob_within": f"{furthest:.1e}",
        "cases": cases,
        "ok": 1000 * len(cases) <= len(sample) and furthest < 1e-4,
    }


# --- parts ---


class Bench:
    """The parts of the benchmark, and what they found.

    Args:
        options: of the command line.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.device = device = Device(options.device)
        self.failed = False
        self._started = time.monotonic()
        name = torch.cuda.get_device_name() if device.is_gpu else "CPU"
        self.found: dict[str, Any] = {"device": name, "torch": torch.__version__}
        self.found["quick"] = quick = options.quick
        print(f"{name}, torch {torch.__version__}, {'quick' if quick else 'full'}")
        sizes = SIZES if device.is_gpu else SMALL
        small = (SIZES[0], SMALL[-1]) if device.is_gpu else SMALL
        updates = (check for size in small for check in check_updates(device, size))
        graphs = (check_graphs(device, size, _data(size, 6)) for size in sizes[-3:])
        steps = {f"steps-{n}": partial(self._steps, size) for n, size in enumerate(sizes, 1)}
        attention = time_attention(device.device, quick, 0.5 if quick else 2.0, "wall")
        self.parts: dict[str, Callable[[], None]] = {
            "checks-loss": partial(self._checks, "loss", check_loss(device, quick)),
            "checks-updates": partial(self._checks, "updates", updates),
            "checks-graphs": partial(self._checks, "graphs", graphs),
            **steps,
            "losses": partial(self._table, "losses", time_losses(device, quick), LOSSES),
            "mappings": partial(self._table, "mappings", time_mappings(device, quick), MAPPINGS),
            "attention": partial(self._table, "attention", attention),
            "encoder": partial(self._table, "encoder", time_encoder(device, quick), ENCODER),
            "decoding": partial(self._table, "decoding", time_decoding(device, quick), DECODING),
        }

    def run(self, names: Sequence[str]) -> None:
        """Run parts by name."""
        for place, name in enumerate(names, 1):
            self.parts[name]()
            self._save()
            print(f"  ({self.found['seconds']:.0f} s)", flush=True)
            if not self.device.works():
                self.failed = True
                self._run_beside(names[place:])
                return
        if self.device.is_gpu and not kernels_start(self.device.device):
            self.failed = True
            print("FAILED: a kernel; PyTorch did the work of all from then on (see the warning)")

    def _run_beside(self, names: Sequence[str]) -> None:
        """Run parts in a new process: some errors of a GPU last as long as the process."""
        if not names:
            return
        print(f"This process cannot use the GPU any more; a new one runs {', '.join(names)}")
        with TemporaryDirectory() as folder:
            output = Path(folder) / "found.json"
            command = [sys.executable, "-m", "tools.bench.gpu", *sys.argv[1:]]
            command += ["--only", ",".join(names), "--output", str(output)]
            subprocess.run(command, check=False)
            if output.is_file():
                for name, rows in json.loads(output.read_text()).items():
                    if isinstance(rows, list):
                        self.found.setdefault(name, []).extend(rows)
        self._save()

    def _save(self) -> None:
        self.found["seconds"] = round(time.monotonic() - self._started, 1)
        self.options.output.write_text(json.dumps(self.found, indent=1) + "\n")

    def _collect(self, name: str, results: Iterator[Result]) -> list[Result]:
        """Return the rows of a part; an error is a row too, so that other parts still run."""
        rows = self.found.setdefault(name, [])
        try:
            for row in results:
                rows.append(row)
                self._save()
        except Exception as error:
            rows.append({"what": name, "error": repr(error)[:300], "ok": False})
            traceback.print_exc()
        self.failed |= not all(row.get("ok", True) for row in rows)
        return rows

    def _checks(self, title: str, results: Iterator[Result]) -> None:
        checks = self._collect(f"{title} checks", results)
        wrong = [check for check in checks if not check["ok"]]
        worst = max((c["error"] for c in checks if isinstance(c["error"], float)), default=0.0)
        print(f"{title}: {len(checks)} checks, {len(wrong)} failed, largest error {worst:.1e}")
        for check in wrong:
            print("  FAILED", check)

    def _steps(self, size: Size) -> None:
        steps = self.found.setdefault("steps", [])
        before = len(steps)
        for row in time_steps(self.device, size, self.options):
            steps.append(row)
            self._save()
        self.failed |= any("error" in row for row in steps)
        _print_steps(size, steps[before:])

    def _table(self, name: str, results: Iterator[Result], title: str = "") -> None:
        rows = self._collect(name, results)
        if title and rows:
            _print_table(title, rows)


def _print_steps(size: Size, steps: list[Result]) -> None:
    title = f"step {size.name}, {size.batch} pairs"
    print(f"\n{title:34} {'ms':>8} {'/ stock':>9} {'/ alpha 1':>9} {'no waits':>9}  support  GB")
    times = {row["contender"]: row["ms"] for row in steps}
    for row in steps:
        ratios = [row["ms"] / times.get(name, math.nan) for name in ("stock softmax", "graph 1")]
        print(
            f"  {row['contender']:32} {row['ms']:8.2f} {ratios[0]:9.3f} {ratios[1]:9.3f}"
            f" {row.get('unwaited_ms', '')!s:>9}  {row.get('support', '')!s:>7}"
            f"  {row.get('gb', '')}"
        )
    for row in steps:
        if "kernels" in row:
            print(
                f"  kernels of a plain step, shape {row['shape']}: {row['kernels']} in "
                f"{row['kernels_ms']} ms"
            )
            for top in row["top"][:3]:  # the file has 30
                print(f"    {top['ms']:8.3f} ms {top['count']:5} {top['kernel'][:90]}")


def _print_table(title: str, rows: list[Result]) -> None:
    print("\n" + title)
    names = [name for name in rows[0] if name not in ("cases", "ok")]
    widths = [max(len(name), *(len(str(row.get(name, ""))) for row in rows)) for name in names]
    columns = list(zip(names, widths, strict=True))
    print("  " + "  ".join(f"{name:>{width}}" for name, width in columns))
    for row in rows:
        print("  " + "  ".join(f"{row.get(name, '')!s:>{width}}" for name, width in columns))
        for case in row.get("cases", ())[:10]:
            print(f"    {case}")


def parse_arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer repeats")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--output", type=Path, default=Path("gpu-bench.json"))
    parser.add_argument("--only", help="parts, such as checks,steps-2,losses; default: all")
    parser.add_argument("--contenders", default="stock,packed,plain,graph")
    parser.add_argument("--batches", type=int, help="different batches of each size")
    parser.add_argument("--warm", type=int, help="updates on each batch before it is timed")
    options = parser.parse_args()
    options.batches = options.batches or (3 if options.device == "cpu" else 16)
    options.warm = options.warm or (3 if options.quick else 6)
    options.contenders = options.contenders.split(",")
    return options


def main() -> int:
    """Run the benchmark; return the exit status, 1 if a check or a table fails."""
    options = parse_arguments()
    bench = Bench(options)
    wanted = options.only.split(",") if options.only else list(bench.parts)
    names = [name for name in bench.parts if {name, name.split("-")[0]} & set(wanted)]
    if not names:
        sys.exit(f"--only {options.only}: the parts are {', '.join(bench.parts)}")
    bench.run(names)
    print(f"{bench.found['seconds']} s; {options.output}")
    return 1 if bench.failed else 0


if __name__ == "__main__":
    sys.exit(main())
