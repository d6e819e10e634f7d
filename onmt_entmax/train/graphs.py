"""Training updates on padded batches, as CUDA graphs.

`PaddedUpdates.accumulate` runs forward, loss and backward pass, and adds the gradient to a flat
buffer; it has a graph for each shape. `PaddedUpdates.finish` clips the gradient, steps the
optimiser and clears the buffer; it has one graph. Between the two, batches accumulate and processes
sum their buffers. Learning rate, scale and statistics are tensors, so nothing waits for the GPU.

A graph replays on the memory of its capture, and would silently use stale data. In the mode
"check", the first replay of each graph is compared with a plain update.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor

from onmt_entmax.data.batch import Batch
from onmt_entmax.data.shapes import PaddedBatch, Shape, Shapes, pad_batch, size, views
from onmt_entmax.model import SparseNMTModel, device_of
from onmt_entmax.nn.lstm import FastInputFeedRNNDecoder, FastRNNEncoder
from onmt_entmax.nn.output import OutputLoss
from onmt_entmax.nn.transformer import PaddedTransformerEncoder
from onmt_entmax.sparse.backends import kernels_start
from onmt_entmax.train.config import TrainingError

MODES = ("on", "off", "check")
MOST_GRAPHS = 128
ON_CPU = False  # tests set this to train on padded batches without a GPU and without graphs
# Relative. A graph replays the kernels of a plain update, but products may add in another order.
_TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-10}
_TF32_TOLERANCE = 1e-2


@dataclass(frozen=True)
class UpdateConfig:
    """Options of an update.

    Attributes:
        max_grad_norm: largest norm of the gradient; 0: no clipping.
        graphs: "on", "off" (plain updates on padded batches), or "check".
        most_graphs: largest number of graphs; further shapes get plain updates.
    """

    max_grad_norm: float = 5.0
    graphs: str = "on"
    most_graphs: int = MOST_GRAPHS


def reason_against(model: SparseNMTModel, optimizer: torch.optim.Optimizer) -> str | None:
    """Return why padded updates cannot train a model with an optimiser, or None if they can."""
    if not isinstance(optimizer, torch.optim.Adam):
        return "the optimiser is not Adam"
    if not all(group.get("fused") for group in optimizer.param_groups):
        return "Adam is not fused"
    device = device_of(model)
    if device.type == "cuda" and not kernels_start(device):
        return "Triton starts no kernels here"
    if not isinstance(model.encoder, PaddedTransformerEncoder):
        if not isinstance(model.encoder, FastRNNEncoder) or not model.encoder.is_covered():
            return "the encoder is not an LSTM of type rnn or brnn without positions"
        decoder = model.decoder
        if not isinstance(decoder, FastInputFeedRNNDecoder) or not decoder.is_covered():
            return "the decoder is not an input-feeding LSTM with global attention"
        if model.encoder.matmul_dtype is not None:
            return "`matmul_dtype: bfloat16` is for CPUs; on a GPU, `tf32` is faster"
    return None


def padded_outputs(
    model: SparseNMTModel, source: Tensor, target: Tensor, lengths: Tensor
) -> Tensor:
    """Return a model's decoder outputs for padded sentences, by teacher forcing.

    Args:
        model: one that `reason_against` accepts.
        source: ids ``(source, rows)``.
        target: ids ``(target + 1, rows)`` with start and end symbols.
        lengths: source lengths ``(rows,)``, at least 1.

    Returns:
        ``(target, rows, hidden)``, also for padding.
    """
    if isinstance(model.encoder, PaddedTransformerEncoder):
        outputs: Tensor = model(source.unsqueeze(2), target.unsqueeze(2), lengths)[0]
        return outputs
    states, bank, lengths = model.encoder(source.unsqueeze(2), lengths)
    model.decoder.init_state(source, bank, states)
    outputs, _ = model.decoder.teacher_forced(target[:-1].unsqueeze(2), None, bank, lengths)
    return outputs.view(len(target) - 1, source.size(1), -1)


Replay = Callable[[], None]


class _Capture:
    """Captures the GPU work of functions in CUDA graphs.

    On a CPU it returns the function itself, so that tests run everything but the capture.

    Args:
        device: the model's device.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        on_gpu = device.type == "cuda"
        self._pool = torch.cuda.graph_pool_handle() if on_gpu else None
        self._beside = torch.cuda.Stream(device) if on_gpu else None

    def __call__(self, function: Replay) -> Replay:
        if self._beside is None:
            return function
        graph = torch.cuda.CUDAGraph()
        # Let other threads use the GPU meanwhile.
        with torch.cuda.graph(graph, pool=self._pool, capture_error_mode="thread_local"):
            function()
        return graph.replay

    @contextmanager
    def on_side_stream(self) -> Iterator[None]:
        """Run a function on a side stream, as CUDA requires before its capture."""
        beside = self._beside
        if beside is None:
            yield
            return
        here = torch.cuda.current_stream(self._device)
        beside.wait_stream(here)
        with torch.cuda.stream(beside):
            yield
        here.wait_stream(beside)


@dataclass
class _Graph:
    """The graph of a shape, and the memory of its input."""

    ids: Tensor
    replay: Replay


class PaddedUpdates:
    """Updates of a model on padded batches.

    Args:
        model: one that `reason_against` accepts, on its device; trained in place.
        optimizer: fused Adam of the model's weights.
        config: options.
        shapes: shapes of the batches.
        pads: padding ids of source and target.
        loss: of targets ``(N,)`` given states ``(N, hidden)``; no shape in it may depend on a
            value. None is that of the model's output layer.

    Attributes:
        gradient: all gradients as one vector, for processes to sum in place.
        measured: sums ``(4,)`` of loss, tokens, correct targets and support since the last
            `finish`, likewise.
        finite: 0-dim tensor, 0 if the last update was not finite and skipped, else 1.
        captured: number of shapes with a graph.
    """

    def __init__(
        self,
        model: SparseNMTModel,
        optimizer: torch.optim.Optimizer,
        config: UpdateConfig,
        shapes: Shapes,
        pads: tuple[int, int],
        loss: Callable[[Tensor, Tensor], OutputLoss] | None = None,
    ) -> None:
        reason = reason_against(model, optimizer)
        if reason is not None:
            raise ValueError(f"updates on padded batches do not cover this: {reason}")
        if config.graphs not in MODES:
            raise ValueError(f"cuda_graphs must be one of {', '.join(MODES)}: {config.graphs}")
        self._model, self._optimizer, self._config = model, optimizer, config
        self._shapes, self._pads, self._device = shapes, pads, device_of(model)
        self._loss = loss or (lambda hidden, target: model.generator.loss(hidden, target, pads[1]))
        self._parameters = [p for p in model.parameters() if p.requires_grad]
        first = self._parameters[0]
        self.gradient = first.new_zeros(sum(p.numel() for p in self._parameters))
        parts = self.gradient.split([p.numel() for p in self._parameters])
        self._grads = [g.view_as(p) for g, p in zip(parts, self._parameters, strict=True)]
        numbers = torch.zeros(11, dtype=first.dtype, device=self._device)
        self.measured, self._report, self._scale, self.finite = (
            numbers[:4],
            numbers[4:9],
            numbers[9],
            numbers[10],
        )
        self._rates = [
            torch.zeros((), dtype=torch.float32, device=self._device)
            for _ in optimizer.param_groups
        ]
        self._settings = [
            (module, name)
            for module in model.modules()
            for name in ("alpha", "dropout", "p")
            if isinstance(getattr(module, name, None), float | int)
        ]
        self._capture = _Capture(self._device)
        self._graphs: dict[Hashable, _Graph] = {}
        self._finishing: Replay | None = None
        self._finished = 0  # steps since `_prepare_optimizer`
        self._seen: Counter[Hashable] = Counter()

    @property
    def captured(self) -> int:
        """Return the number of shapes with a graph."""
        return len(self._graphs)

    def pad(self, batch: Batch) -> PaddedBatch:
        """Pad a batch on the CPU to its shape; for a GPU, in pinned memory."""
        padded = pad_batch(batch, self._shapes, *self._pads)
        if self._device.type == "cuda":
            padded = PaddedBatch(padded.shape, padded.ids.pin_memory(), padded.batch)
        return padded

    def accumulate(self, batch: PaddedBatch, scale: float) -> None:
        """Add the gradient of a batch's loss times `scale` to `gradient`."""
        self._scale.fill_(scale)
        key = self._key(batch.shape)
        graph = self._graphs.get(key)
        if graph is not None:
            graph.ids.copy_(batch.ids, non_blocking=True)
            graph.replay()
            return
        self._seen[key] += 1
        wanted = self._config.graphs != "off"
        if not wanted or self._seen[key] == 1 or self.captured >= self._config.most_graphs:
            ids = batch.ids.to(self._device, non_blocking=True)
            with self._capture.on_side_stream() if wanted else nullcontext():
                self._add_gradient(ids, batch.shape)
            return
        ids = torch.empty(size(batch.shape), dtype=torch.int64, device=self._device)
        ids.copy_(batch.ids)
        replay = self._capture(lambda: self._add_gradient(ids, batch.shape))
        if self._config.graphs == "check":
            self._compare(
                f"of the shape {tuple(batch.shape)}",
                replay,
                lambda: self._add_gradient(ids, batch.shape),
                [self.gradient, self.measured],
            )
        else:
            replay()
        self._graphs[key] = _Graph(ids, replay)

    def finish(self, *learning_rates: float) -> Tensor:
        """Clip the gradient, update the weights, and clear `gradient` and `measured`.

        If the loss or the gradient is not finite, no weight changes.

        Args:
            learning_rates: of each group of the optimiser; more are ignored.

        Returns:
            ``(5,)`` on the model's device: `measured` and the norm of the gradient. The next call
            overwrites it.
        """
        self._prepare_optimizer()
        for kept, rate in zip(self._rates, learning_rates[: len(self._rates)], strict=True):
            kept.fill_(rate)
        if self._finishing is not None:
            self._finishing()
        elif self._finished == 0 or self._config.graphs == "off":
            # The first step creates the optimiser's state.
            self._step()
        else:
            finishing = self._capture(self._step)
            if self._config.graphs == "check":
                self._compare("of the optimiser", finishing, self._step, self._changed_by_a_step())
            else:
                finishing()
            self._finishing = finishing
        self._finished += 1
        return self._report

    # --- captured functions: these must not read values back ---

    def _add_gradient(self, ids: Tensor, shape: Shape) -> None:
        """Add the gradient and the statistics of a batch."""
        model = self._model
        source, target, lengths = views(ids, shape)
        outputs = padded_outputs(model, source, target, lengths)
        loss, *counts = self._loss(outputs.flatten(0, 1), target[1:].flatten())
        found = torch.autograd.grad(loss * self._scale, self._parameters, allow_unused=True)
        _add(self._grads, found)
        self.measured += torch.stack([loss.detach(), *counts])

    def _step(self) -> None:
        """Clip the gradient, step the optimiser if all is finite, and clear the buffers."""
        norm = torch.linalg.vector_norm(self.gradient)
        most = self._config.max_grad_norm
        if most > 0:  # as `torch.nn.utils.clip_grad_norm_`
            self.gradient.mul_((most / (norm + 1e-6)).clamp(max=1.0))
        finite = (self.measured[0] + norm).isfinite()
        self.finite.copy_(finite)
        self._optimizer.found_inf = (~finite).float()  # type: ignore[attr-defined]
        self._optimizer.step()
        self._report[:4] = self.measured
        self._report[4] = norm
        self.measured.zero_()
        self.gradient.zero_()

    # --- around the graphs ---

    def _key(self, shape: Shape) -> Hashable:
        """Return all that a graph depends on besides weights and input."""
        settings = tuple(getattr(module, name) for module, name in self._settings)
        return shape, self._model.training, settings

    def _prepare_optimizer(self) -> None:
        """Fix the addresses of gradients and learning rates; loading a state replaces these."""
        groups = self._optimizer.param_groups
        if all(group["lr"] is rate for group, rate in zip(groups, self._rates, strict=True)):
            return
        for group, rate in zip(groups, self._rates, strict=True):
            group["lr"] = rate
            group["capturable"] = self._device.type == "cuda"
        # No warning that the first steps run outside a graph.
        self._optimizer._warned_capturable_if_run_uncaptured = True
        for parameter, grad in zip(self._parameters, self._grads, strict=True):
            parameter.grad = grad
        self._finishing, self._finished = None, 0

    def _changed_by_a_step(self) -> list[Tensor]:
        states = [
            value
            for state in self._optimizer.state.values()
            for value in state.values()
            if isinstance(value, Tensor)
        ]
        made = [self.gradient, self.measured, self._report, self.finite]
        return [*self._parameters, *states, *made]

    def _compare(self, what: str, replay: Replay, plain: Replay, changed: Sequence[Tensor]) -> None:
        """Compare a graph's first replay with a plain update, and keep the latter's result.

        Args:
            what: the graph, for the error.
            replay: replays it.
            plain: does the same without a graph.
            changed: the tensors that both change.

        Raises:
            TrainingError: the results differ.
        """
        before = [tensor.detach().clone() for tensor in changed]
        with torch.random.fork_rng([self._device] if self._device.type == "cuda" else []):
            replay()
        found = [tensor.detach().clone() for tensor in changed]
        with torch.no_grad():
            for tensor, value in zip(changed, before, strict=True):
                tensor.copy_(value)
        plain()
        rounded = torch.get_float32_matmul_precision() != "highest"
        for got, wanted in zip(found, changed, strict=True):
            wanted = wanted.detach()
            tolerance = _TF32_TOLERANCE if rounded else _TOLERANCE.get(wanted.dtype, 0.0)
            scale = float(wanted.abs().max()) if wanted.numel() else 0.0
            difference = float((got - wanted).abs().max()) if wanted.numel() else 0.0
            if not difference <= tolerance * max(scale, 1e-30):
                raise TrainingError(
                    f"the CUDA graph {what} differs from a plain update by {difference:.2g} where "
                    f"the largest value is {scale:.2g}; train with `cuda_graphs: off` and report it"
                )


def _add(sums: Sequence[Tensor], found: Sequence[Tensor | None]) -> None:
    """Add gradients to the sums, with one kernel for all of the same memory layout."""
    pairs = [(total, more) for total, more in zip(sums, found, strict=True) if more is not None]
    alike = [pair for pair in pairs if pair[0].stride() == pair[1].stride()]
    if alike:
        torch._foreach_add_([total for total, _ in alike], [more for _, more in alike])
    for total, more in pairs:
        if total.stride() != more.stride():
            total.add_(more)


def portable(state: dict[str, object]) -> dict[str, object]:
    """Return an optimiser's state for a checkpoint, independent of graphs and device.

    Args:
        state: the optimiser's `state_dict()`.
    """
    groups = []
    for group in state["param_groups"]:  # type: ignore[attr-defined]
        group = dict(group)
        if isinstance(group.get("lr"), Tensor):
            group["lr"] = float(group["lr"])
            group["capturable"] = False
        groups.append(group)
    return {**state, "param_groups": groups}
