"""Training updates on padded batches of few shapes, and CUDA graphs around them.

An update has two parts. The first adds the gradient of a batch to one flat buffer: forward, loss
and backward, a graph for each shape. The second, one graph for all, clips, steps and clears it. So
batches accumulate by running the first part several times, and processes exchange gradients
between the parts by one sum over the buffer. Learning rate, scale and measurements are tensors;
nothing is read back. Averages of weights are updated beside the graphs.

A captured graph computes on the memory it was captured with, and does not fail where that has
become wrong. In the mode "check" the first replay of each graph is compared with a plain update.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

from onmt_entmax.data.batch import Batch
from onmt_entmax.data.shapes import PaddedBatch, Shape, Shapes, pad_batch, size, views
from onmt_entmax.model import SparseNMTModel, device_of
from onmt_entmax.nn import static_loss
from onmt_entmax.nn.lstm import static
from onmt_entmax.train.config import TrainingError

MODES = ("on", "off", "check")
MOST_GRAPHS = 128
ON_CPU = False  # train on padded batches on a CPU too, where plain updates stand in for graphs
# A graph starts the kernels of the plain update, but products may sum in another order.
_TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-10}
_TF32_TOLERANCE = 1e-2


@dataclass(frozen=True)
class UpdateConfig:
    """What an update is told.

    Attributes:
        max_grad_norm: the gradient is clipped to this norm; 0 clips nothing.
        label_smoothing: of the loss.
        graphs: "on", "off" (plain updates on padded batches), or "check".
        most_graphs: shapes beyond so many are computed without a graph.
    """

    max_grad_norm: float = 5.0
    label_smoothing: float = 0.0
    graphs: str = "on"
    most_graphs: int = MOST_GRAPHS


def reason_against(model: SparseNMTModel, optimizer: torch.optim.Optimizer) -> str | None:
    """Why updates on padded batches do not cover a model and its optimiser, or None."""
    if not isinstance(optimizer, torch.optim.Adam):
        return "the optimiser is not Adam"
    if not all(group.get("fused") for group in optimizer.param_groups):
        return "Adam is not fused"
    return static.reason_against(model.encoder, model.decoder) or static_loss.reason_against(
        model.generator
    )


Replay = Callable[[], None]


class _Recorder:
    """Records what a function does on the device, to do it again at once.

    On a CPU, where nothing can be recorded, the function itself is called again: everything but
    the capture is the same there, and so it is tested.

    Args:
        device: of the model.
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
        # Other threads may go on with what they do on the device.
        with torch.cuda.graph(graph, pool=self._pool, capture_error_mode="thread_local"):
            function()
        return graph.replay

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Run what is captured later on a stream beside, as capture wants its first run."""
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
    """A recorded gradient of one shape."""

    ids: Tensor
    replay: Replay


class PaddedUpdates:
    """Updates of a model on padded batches.

    Args:
        model: trained in place, covered (`reason_against`), on its device.
        optimizer: fused Adam of its weights.
        config: see `UpdateConfig`.
        shapes: of the batches.
        pads: ids of padding in source and target.

    Attributes:
        gradient: all gradients as one vector; their sum over processes goes here.
        measured: `(4,)` sums of loss, tokens, correct targets and support since the last `finish`.
        finite: 1 on the device if the last update was finite, 0 if it was skipped.
        captured: how many graphs there are.
    """

    def __init__(
        self,
        model: SparseNMTModel,
        optimizer: torch.optim.Optimizer,
        config: UpdateConfig,
        shapes: Shapes,
        pads: tuple[int, int],
    ) -> None:
        reason = reason_against(model, optimizer)
        if reason is not None:
            raise ValueError(f"updates on padded batches do not cover this: {reason}")
        if config.graphs not in MODES:
            raise ValueError(f"cuda_graphs must be one of {', '.join(MODES)}: {config.graphs}")
        self._model, self._optimizer, self._config = model, optimizer, config
        self._shapes, self._pads, self._device = shapes, pads, device_of(model)
        self._parameters = [p for p in model.parameters() if p.requires_grad]
        first = self._parameters[0]
        self.gradient = first.new_zeros(sum(p.numel() for p in self._parameters))
        parts = self.gradient.split([p.numel() for p in self._parameters])
        self._grads = [g.view_as(p) for g, p in zip(parts, self._parameters, strict=True)]
        numbers = torch.zeros(11, dtype=first.dtype, device=self._device)
        self.measured, self._report, self._scale, self.finite, self._rate = (
            numbers[:4],
            numbers[4:9],
            numbers[9],
            numbers[10],
            torch.zeros((), dtype=torch.float32, device=self._device),
        )
        self._recorder = _Recorder(self._device)
        self._graphs: dict[Hashable, _Graph] = {}
        self._finishing: Replay | None = None
        self._finished = 0  # steps since the optimiser was taken over
        self._seen: Counter[Hashable] = Counter()

    @property
    def captured(self) -> int:
        """How many shapes have a graph."""
        return len(self._graphs)

    def pad(self, batch: Batch) -> PaddedBatch:
        """Pad a batch of the CPU to its shape; on a GPU's machine, in memory it can copy from."""
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
            with self._recorder.aside() if wanted else _nothing():
                self._add_gradient(ids, batch.shape)
            return
        ids = torch.empty(size(batch.shape), dtype=torch.int64, device=self._device)
        ids.copy_(batch.ids)
        replay = self._recorder(lambda: self._add_gradient(ids, batch.shape))
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

    def finish(self, learning_rate: float) -> Tensor:
        """Clip, change the weights, and begin a new gradient.

        An update whose loss or gradient is not finite changes no weight.

        Returns:
            `(5,)` on the device: what `measured` was, and the gradient's norm. It is overwritten by
            the next call.
        """
        self._take_over_optimizer()
        self._rate.fill_(learning_rate)
        if self._finishing is not None:
            self._finishing()
        elif self._finished == 0 or self._config.graphs == "off":
            # The first step makes the optimiser's state.
            self._step()
        else:
            finishing = self._recorder(self._step)
            if self._config.graphs == "check":
                self._compare("of the optimiser", finishing, self._step, self._changed_by_a_step())
            else:
                finishing()
            self._finishing = finishing
        self._finished += 1
        return self._report

    # --- what is captured ------------------------------------------------------------------

    def _add_gradient(self, ids: Tensor, shape: Shape) -> None:
        """Forward, loss and backward of a batch; looks at no value."""
        model = self._model
        source, target, lengths = views(ids, shape)
        outputs = static.static_outputs(model.encoder, model.decoder, source, lengths, target[:-1])
        loss, *counts = static_loss.static_loss(
            model.generator,
            outputs.flatten(0, 1),
            target[1:].flatten(),
            self._pads[1],
            self._config.label_smoothing,
        )
        found = torch.autograd.grad(loss * self._scale, self._parameters, allow_unused=True)
        _add(self._grads, found)
        self.measured += torch.stack([loss.detach(), *counts])

    def _step(self) -> None:
        """Clip, step unless something is not finite, and clear."""
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

    # --- around it -------------------------------------------------------------------------

    def _key(self, shape: Shape) -> Hashable:
        """What is written into a graph."""
        model = self._model
        dropout = model.encoder.rnn.dropout, model.decoder.rnn.dropout.p, model.decoder.dropout.p
        return shape, model.training, dropout, model.decoder._alpha(), model.generator.alpha

    def _take_over_optimizer(self) -> None:
        """Give the optimiser fixed gradients and a learning rate on the device; again when its
        state was loaded."""
        groups = self._optimizer.param_groups
        if all(group["lr"] is self._rate for group in groups):
            return
        for group in groups:
            group["lr"] = self._rate
            group["capturable"] = self._device.type == "cuda"
        # torch warns of steps outside of a graph, which here are the first ones.
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
        """Run a graph's first replay and the plain update from the same state; keep the latter.

        Raises:
            TrainingError: they differ.
        """
        before = [tensor.detach().clone() for tensor in changed]
        with self._same_random_numbers():
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

    @contextmanager
    def _same_random_numbers(self) -> Iterator[None]:
        """After the block the generator is where it was before."""
        if self._device.type == "cuda":
            state = torch.cuda.get_rng_state(self._device)
            yield
            torch.cuda.set_rng_state(state, self._device)
        else:
            state = torch.get_rng_state()
            yield
            torch.set_rng_state(state)


@contextmanager
def _nothing() -> Iterator[None]:
    yield


def _add(sums: Sequence[Tensor], found: Sequence[Tensor | None]) -> None:
    """Add what was found to the sums, in one kernel where memory layouts agree."""
    pairs = [(total, more) for total, more in zip(sums, found, strict=True) if more is not None]
    alike = [pair for pair in pairs if pair[0].stride() == pair[1].stride()]
    if alike:
        torch._foreach_add_([total for total, _ in alike], [more for _, more in alike])
    for total, more in pairs:
        if total.stride() != more.stride():
            total.add_(more)


def portable(state: dict[str, object]) -> dict[str, object]:
    """An optimiser's state for a checkpoint: the learning rate as a number, and no trace of graphs.

    Args:
        state: what `state_dict` of the optimiser gives.
    """
    groups = []
    for group in state["param_groups"]:  # type: ignore[attr-defined]
        group = dict(group)
        if isinstance(group.get("lr"), Tensor):
            group["lr"] = float(group["lr"])
            group["capturable"] = False
        groups.append(group)
    return {**state, "param_groups": groups}
