"""One update: the gradient of some batches, then a step of the optimiser.

The same two functions train on a CPU and on a GPU. Sizes, learning rates and measurements are
tensors, so that nothing waits for the GPU. Batches that are padded to few shapes let CUDA graphs
replay the functions. A graph starts all kernels of a function at once, on the memory of its
capture: what the function reads must be at the same addresses at every call, or stale data is used
silently. In the mode "check", the first replay of each graph is compared with a plain call.
"""

from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from onmt_entmax.config import TrainingConfig
from onmt_entmax.data.batch import Batch, Shape, Shapes
from onmt_entmax.errors import UserError
from onmt_entmax.model import SparseNMTModel, device_of
from onmt_entmax.nn.output import OutputLoss
from onmt_entmax.sparse import backends

MOST_GRAPHS = 128
# Relative. A graph replays the kernels of a plain update, but products may add in another order.
_TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-10}
_TF32_TOLERANCE = 1e-2
# Updates that a GPU may be behind this process, a few tens of milliseconds.
_BEHIND = 8


def reason_against(model: SparseNMTModel) -> str | None:
    """Return why a model cannot be trained on padded batches, or None if it can."""
    backend = backends.of(next(model.parameters()), 1.5)
    if device_of(model).type == "cuda" and backend is backends.reference:
        return "Triton starts no kernels here"
    for part in (model.encoder, model.decoder):
        if part.why_not_padded is not None:
            return part.why_not_padded
    if model.encoder.matmul_dtype is not None:
        return "`matmul_dtype: bfloat16` is for CPUs; on a GPU, `tf32` is faster"
    return None


def pad_batch(
    batch: Batch, shapes: Shapes, source_pad: int, target_pad: int
) -> tuple[Tensor, Shape]:
    """Pad a batch to its shape, in one tensor, to copy it to a GPU at once.

    Args:
        batch: a batch on the CPU, with one feature and with targets.
        shapes: rules for its shape.
        source_pad: padding id of the source.
        target_pad: padding id of the target, which the loss ignores.

    Returns:
        Ids and lengths, int64, of which `views` returns the parts; and the shape.
    """
    assert batch.target is not None
    shape = shapes.of(batch)
    ids = torch.empty((shape.source + shape.target + 2) * shape.sentences, dtype=torch.int64)
    source, target, lengths = views(ids, shape)
    for part, given, pad in (
        (source, batch.source, source_pad),
        (target, batch.target, target_pad),
    ):
        part.fill_(pad)
        part[: given.size(0), : given.size(1)] = given[:, :, 0]
    lengths.fill_(1)
    lengths[: len(batch)] = batch.source_lengths
    return ids, shape


def views(ids: Tensor, shape: Shape) -> tuple[Tensor, Tensor, Tensor]:
    """Return the parts of a padded batch.

    Returns:
        Source ids ``(source, sentences)``, target ids ``(target + 1, sentences)`` with start and
        end symbols, and source lengths ``(sentences,)``, 1 for padding sentences.
    """
    sizes = [shape.source * shape.sentences, (shape.target + 1) * shape.sentences, shape.sentences]
    source, target, lengths = ids.split(sizes)
    return source.view(-1, shape.sentences), target.view(-1, shape.sentences), lengths


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
    source, inputs = source.unsqueeze(2), target[:-1].unsqueeze(2)
    outputs, _ = model.teacher_forced(source, lengths, inputs, None)
    return outputs.view(len(inputs), source.size(1), -1)


class Update:
    """Updates of a model.

    Args:
        model: on its device; trained in place.
        optimizer: of `build_optimizer`.
        config: largest norm of the gradient, label smoothing and CUDA graphs.
        pads: padding ids of source and target.
        shapes: pads batches to these; None trains on them as they are, without CUDA graphs.

    Attributes:
        parameters: the trained weights, whose `grad` accumulates.
        measured: ``(6,)`` sums since the last step of loss, tokens, correct targets and support,
            then a signal and seconds, which the caller sets. Processes sum them in place.
        finite: 0-dim tensor, 0 if the last step was left out, else 1.
        recorder: its CUDA graphs.
    """

    def __init__(
        self,
        model: SparseNMTModel,
        optimizer: torch.optim.Optimizer,
        config: TrainingConfig,
        pads: tuple[int, int],
        shapes: Shapes | None,
    ) -> None:
        self._model, self._optimizer, self._config = model, optimizer, config
        self._pads, self._shapes, self._device = pads, shapes, device_of(model)
        self.parameters = [p for p in model.parameters() if p.requires_grad]
        self._fused = all(group.get("fused") for group in optimizer.param_groups)
        numbers = torch.zeros(15, dtype=self.parameters[0].dtype, device=self._device)
        self.measured, self._report = numbers[:6], numbers[6:13]
        self._size, self.finite = numbers[13], numbers[14]
        self._inputs: dict[Shape, Tensor] = {}
        self._settings = [
            (module, name)
            for module in model.modules()
            for name in ("alpha", "dropout", "p")
            if isinstance(getattr(module, name, None), float | int)
        ]
        self._last_settings: tuple[object, ...] | None = None  # of the update before
        self.recorder = Recorder(self._device, config.cuda_graphs if shapes else "off")
        if shapes is None:
            return
        for parameter in self.parameters:
            parameter.grad = torch.zeros_like(parameter)
        if self._fused:
            for group in optimizer.param_groups:
                group["lr"] = torch.zeros((), device=self._device)
                group["capturable"] = self._device.type == "cuda"
            # No warning that the first step runs outside a graph.
            optimizer._warned_capturable_if_run_uncaptured = True

    def loss(self, batch: Batch) -> OutputLoss:
        """Return the loss, summed over all targets of a batch on the model's device."""
        assert batch.target is not None
        if self._shapes is None:
            hidden, target = self._model.hidden_states(batch)
        else:
            source, ids, lengths = (
                batch.source[:, :, 0],
                batch.target[:, :, 0],
                batch.source_lengths,
            )
            hidden = padded_outputs(self._model, source, ids, lengths).flatten(0, 1)
            target = ids[1:].flatten()
        smoothing = self._config.label_smoothing
        return self._model.generator.loss(hidden, target, self._pads[1], smoothing)

    def add(self, batch: Batch, size: int) -> None:
        """Add the gradient of a batch's loss divided by `size` to that of `parameters`."""
        self._size.fill_(size)
        if self._shapes is None:
            self._add_gradient(batch.to(self._device))
            return
        on_cpu, shape = pad_batch(batch, self._shapes, *self._pads)
        if shape not in self._inputs:
            self._inputs[shape] = torch.empty_like(on_cpu, device=self._device)
        if self._device.type == "cuda":
            on_cpu = on_cpu.pin_memory()
        ids = self._inputs[shape].copy_(on_cpu, non_blocking=True)
        source, target, lengths = views(ids, shape)
        moved = Batch(source.unsqueeze(2), lengths, target.unsqueeze(2), None, ())
        settings = self._current_settings()
        # While attention warms up, each update has alphas of its own: no graph would serve twice.
        lasting = settings == self._last_settings
        key = shape, settings
        self.recorder.call(key, lambda: self._add_gradient(moved), self._sums, lasting)

    def step(self, learning_rates: Sequence[float]) -> Tensor:
        """Clip the gradient, update the weights, and clear `grad` and `measured`.

        If the loss or the gradient is not finite, no weight changes.

        Args:
            learning_rates: of each group of the optimiser; more are ignored.

        Returns:
            ``(7,)`` on the model's device: `measured` and the norm of the gradient. The next call
            overwrites it.
        """
        self._last_settings = self._current_settings()
        for group, rate in zip(self._optimizer.param_groups, learning_rates, strict=False):
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(rate)
            else:
                group["lr"] = rate
        if self._fused:
            self.recorder.call("the optimiser", self._step, self._state)
        else:
            self._step()
        return self._report

    def _current_settings(self) -> tuple[object, ...]:
        """Return the numbers that a graph holds fixed: alphas and dropout."""
        return tuple(getattr(module, name) for module, name in self._settings)

    # --- what CUDA graphs record: these must not read values back ---

    def _add_gradient(self, batch: Batch) -> None:
        result = self.loss(batch)
        loss = result.loss / self._size
        if self._shapes is None:
            loss.backward()
        else:  # into the same memory each time, with one kernel
            gradients = torch.autograd.grad(loss, self.parameters, allow_unused=True)
            parts = [
                (parameter.grad, gradient.contiguous())
                for parameter, gradient in zip(self.parameters, gradients, strict=True)
                if gradient is not None
            ]
            torch._foreach_add_([old for old, _ in parts], [new for _, new in parts])
        self.measured[:4] += torch.stack([value.detach().to(self.measured) for value in result])
        # The state keeps the autograd graph, whose nodes belong to the stream of their first use.
        self._model.decoder.state.clear()

    def _step(self) -> None:
        gradients = [p.grad for p in self.parameters if p.grad is not None]
        norm = nn.utils.get_total_norm(gradients)
        if self._config.optimizer.max_grad_norm > 0:
            nn.utils.clip_grads_with_norm_(
                self.parameters, self._config.optimizer.max_grad_norm, norm
            )
        self.finite.copy_((self.measured[0] + norm).isfinite())
        if self._fused:  # leaves out the step by itself
            self._optimizer.found_inf = (1 - self.finite).float()  # type: ignore[attr-defined]
        if self._fused or bool(self.finite):
            self._optimizer.step()
        self._report[:6], self._report[6] = self.measured, norm
        self.measured.zero_()
        if self._shapes is None:
            self._optimizer.zero_grad()
        else:
            torch._foreach_zero_(gradients)

    # --- what they change, for comparisons ---

    def _sums(self) -> list[Tensor]:
        return [*(p.grad for p in self.parameters if p.grad is not None), self.measured]

    def _state(self) -> list[Tensor]:
        states = [x for each in self._optimizer.state.values() for x in each.values()]
        tensors = [x for x in states if isinstance(x, Tensor)]
        return [*self.parameters, *tensors, *self._sums(), self._report, self.finite]


class Recorder:
    """Calls functions, and from the second call on replays a graph of each.

    On a CPU a function is its own graph, so that tests run everything but the capture.

    Args:
        device: of the model.
        mode: "on", "off" (plain calls), or "check".
    """

    def __init__(self, device: torch.device, mode: str) -> None:
        self._device, self._mode = device, mode
        self._on_gpu = device.type == "cuda" and mode != "off"
        self._pool = torch.cuda.graph_pool_handle() if self._on_gpu else None
        self._beside = torch.cuda.Stream(device) if self._on_gpu else None
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
        if not self._on_gpu:
            return function
        graph = torch.cuda.CUDAGraph()
        # Let other threads use the GPU meanwhile.
        with torch.cuda.graph(graph, pool=self._pool, capture_error_mode="thread_local"):
            function()
        return graph.replay

    @contextmanager
    def _on_side_stream(self) -> Iterator[None]:
        """Run a function on a side stream, as CUDA requires before its capture."""
        if self._beside is None:
            yield
            return
        here = torch.cuda.current_stream(self._device)
        self._beside.wait_stream(here)
        with torch.cuda.stream(self._beside):
            yield
        here.wait_stream(self._beside)

    def _compare(
        self,
        key: Hashable,
        replay: Callable[[], object],
        function: Callable[[], object],
        changed: list[Tensor],
    ) -> None:
        """Compare a graph's first replay with a plain call, and keep the latter's result."""
        before = [tensor.detach().clone() for tensor in changed]
        with torch.random.fork_rng([self._device] if self._on_gpu else []):
            replay()
        replayed = [tensor.detach().clone() for tensor in changed]
        with torch.no_grad():
            torch._foreach_copy_(changed, before)
        function()
        rounded = torch.get_float32_matmul_precision() != "highest"
        for actual, tensor in zip(replayed, changed, strict=True):
            expected = tensor.detach()
            tolerance = _TF32_TOLERANCE if rounded else _TOLERANCE.get(expected.dtype, 0.0)
            scale = float(expected.abs().max())
            difference = float((actual - expected).abs().max())
            if not difference <= tolerance * max(scale, 1e-30):
                raise UserError(
                    f"the CUDA graph of {key} differs from a plain update by {difference:.2g} "
                    f"where the largest value is {scale:.2g}; train with `cuda_graphs: off` and "
                    "report it"
                )


class Reports:
    """Reports of updates on their way from the device, so that no update waits for them.

    Args:
        device: that they come from.
    """

    def __init__(self, device: torch.device) -> None:
        self.delay = _BEHIND if device.type == "cuda" else 0
        self._sent: deque[tuple[int, Tensor, torch.cuda.Event | None]] = deque()

    def send(self, step: int, values: Tensor) -> None:
        """Start to copy the report of update number `step`."""
        if values.device.type == "cuda":
            pinned = torch.empty(values.shape, dtype=values.dtype, pin_memory=True)
            pinned.copy_(values, non_blocking=True)
            arrived = torch.cuda.Event()
            arrived.record()
            self._sent.append((step, pinned, arrived))
        else:
            self._sent.append((step, values.clone(), None))

    def read(self, everything: bool = False) -> Iterator[tuple[int, list[float]]]:
        """Yield step and values of all but the newest `delay` reports, or of all."""
        while len(self._sent) > (0 if everything else self.delay):
            step, values, arrived = self._sent.popleft()
            if arrived is not None:
                arrived.synchronize()
            yield step, values.tolist()
