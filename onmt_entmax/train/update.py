"""One update: the gradient of some batches, then a step of the optimiser.

The same two functions train on a CPU and on a GPU. Batches that are padded to few shapes let CUDA
graphs replay them (`graphs.py`). Sizes, learning rates and measurements are tensors, so that
nothing waits for the GPU.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn

from onmt_entmax.data.batch import Batch
from onmt_entmax.data.shapes import Shape, Shapes, pad_batch, views
from onmt_entmax.model import SparseNMTModel, device_of
from onmt_entmax.nn.output import OutputLoss
from onmt_entmax.train.config import TrainingConfig
from onmt_entmax.train.graphs import Recorder, padded_outputs

# Updates that a GPU may be behind this process, a few tens of milliseconds.
_BEHIND = 8


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
        shapes: Shapes | None = None,
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
        padded = pad_batch(batch, self._shapes, *self._pads)
        shape, on_cpu = padded.shape, padded.ids
        if self._device.type == "cuda":
            on_cpu = on_cpu.pin_memory()
        if shape not in self._inputs:
            self._inputs[shape] = torch.empty_like(padded.ids, device=self._device)
        ids = self._inputs[shape].copy_(on_cpu, non_blocking=True)
        source, target, lengths = views(ids, shape)
        moved = Batch(source.unsqueeze(2), lengths, target.unsqueeze(2), None, ())
        settings = tuple(getattr(module, name) for module, name in self._settings)
        self.recorder.call(
            (shape, settings), lambda: self._add_gradient(moved), lambda: self._sums()
        )

    def step(self, learning_rates: Sequence[float]) -> Tensor:
        """Clip the gradient, update the weights, and clear `grad` and `measured`.

        If the loss or the gradient is not finite, no weight changes.

        Args:
            learning_rates: of each group of the optimiser; more are ignored.

        Returns:
            ``(7,)`` on the model's device: `measured` and the norm of the gradient. The next call
            overwrites it.
        """
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
