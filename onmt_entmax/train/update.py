"""One update: the gradient of some batches, then a step of the optimiser.

Two functions compute everything, on a CPU and on a GPU: `Update._add_gradient` and `Update._step`.
Sizes and measurements are tensors, as learning rates are, so that nothing waits for the GPU, and
CUDA graphs (see `graphs`) can replay the functions for batches that are padded to few shapes (see
`padded`).
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from onmt_entmax.config import TrainingConfig
from onmt_entmax.data.batch import Batch
from onmt_entmax.data.shapes import Shapes
from onmt_entmax.data.vocabulary import Vocabularies
from onmt_entmax.model import SparseNMTModel, device_of
from onmt_entmax.nn.output import OutputLoss
from onmt_entmax.train.graphs import Recorder
from onmt_entmax.train.optimiser_step import OptimizerStep
from onmt_entmax.train.padded import PaddedInputs, padded_outputs
from onmt_entmax.train.reports import Report

# Places in `Update.measured`.
_LOSS = Report._fields.index("loss")
_SIGNAL = Report._fields.index("signal")
_SECONDS = Report._fields.index("seconds")


def normaliser(batches: Sequence[Batch], unit: str) -> int:
    """Return what the loss of an update is divided by.

    Args:
        batches: the batches of the update, of all processes together.
        unit: `sents`: their sentences; `tokens`: their target tokens, end symbols included.
    """
    if unit != "tokens":
        return sum(map(len, batches))
    lengths = [batch.target_lengths for batch in batches if batch.target_lengths is not None]
    # The start symbol is not predicted.
    return sum(int(of_batch.sum()) - len(of_batch) for of_batch in lengths)


class Update:
    """Updates of a model: for each, `add` its batches, then `step`.

    Between the two, processes sum `measured` and the gradients of `parameters`.

    Args:
        model: on its device; trained in place.
        optimizer: one that `build_optimizer` made.
        config: largest norm of the gradient, label smoothing and CUDA graphs.
        vocabularies: have the padding ids of source and target.
        shapes: pads batches to these; None trains on them as they are, without CUDA graphs.

    Attributes:
        parameters: the trained weights, whose `grad` accumulates.
        measured: ``(6,)``, the fields of `Report` but the norm: sums since the last step, then a
            signal and seconds, see `report_signal` and `report_seconds`. Processes sum them in
            place.
        recorder: its CUDA graphs.
    """

    def __init__(
        self,
        model: SparseNMTModel,
        optimizer: torch.optim.Optimizer,
        config: TrainingConfig,
        vocabularies: Vocabularies,
        shapes: Shapes | None,
    ) -> None:
        self._model = model
        self._config = config
        self._target_pad = vocabularies.target.pad
        self._device = device_of(model)
        self._padded_inputs: PaddedInputs | None = None
        if shapes is not None:
            self._padded_inputs = PaddedInputs(shapes, vocabularies, self._device)
        self.parameters = [p for p in model.parameters() if p.requires_grad]
        self._optimizer_step = OptimizerStep(
            optimizer,
            self.parameters,
            config.optimizer.max_grad_norm,
            keep_addresses=shapes is not None,
        )
        self._report = self.parameters[0].new_zeros(len(Report._fields))
        self.measured = torch.zeros_like(self._report[:-1])
        self._size = self._report.new_zeros(())  # what the loss is divided by
        # Numbers that a graph would keep from its recording: each module with the name of its
        # attribute. `alpha` is that of sparse mappings; nn.Dropout has its probability as `p`,
        # other layers as `dropout`.
        self._settings = [
            (module, name)
            for module in model.modules()
            for name in ("alpha", "dropout", "p")
            if isinstance(getattr(module, name, None), float | int)
        ]
        self._last_settings: tuple[object, ...] | None = None  # in the update before
        self.recorder = Recorder(self._device, config.cuda_graphs if shapes else "off")

    @property
    def finite(self) -> Tensor:
        """0-dim, 0 if the last step was left out since it was not finite, else 1."""
        return self._optimizer_step.finite

    def report_signal(self, number: int) -> None:
        """Report that this process has received a signal."""
        self.measured[_SIGNAL] = number

    def report_seconds(self, seconds: float) -> None:
        """Report the time of the run. Processes are summed, so only one of them may."""
        self.measured[_SECONDS] = seconds

    def loss(self, batch: Batch) -> OutputLoss:
        """Return the loss, summed over all targets of a batch on the model's device."""
        assert batch.target is not None
        if self._padded_inputs is None:
            hidden, target = self._model.hidden_states(batch)
        else:
            source, ids = batch.source[:, :, 0], batch.target[:, :, 0]
            outputs = padded_outputs(self._model, source, ids, batch.source_lengths)
            hidden, target = outputs.flatten(0, 1), ids[1:].flatten()
        smoothing = self._config.label_smoothing
        return self._model.generator.loss(hidden, target, self._target_pad, smoothing)

    def add(self, batch: Batch, size: int) -> None:
        """Add the gradient of a batch's loss, divided by `size`, to the `grad` of the parameters.

        Args:
            batch: on the CPU.
            size: see `normaliser`.
        """
        self._size.fill_(size)
        if self._padded_inputs is None:
            self._add_gradient(batch.to(self._device))
            return
        padded, shape = self._padded_inputs.copy(batch)
        settings = self._current_settings()
        # While attention warms up, each update has other alphas than the one before, so a graph
        # would serve once.
        lasting = settings == self._last_settings
        key = shape, settings
        self.recorder.call(key, lambda: self._add_gradient(padded), self._sums, lasting)

    def step(self, learning_rates: Sequence[float]) -> Tensor:
        """Clip the gradient, update the weights, and clear `grad` and `measured`.

        If the loss or the gradient is not finite, no weight changes.

        Args:
            learning_rates: one for each group of the optimiser; more are ignored.

        Returns:
            ``(7,)`` on the model's device, in the order of `Report`. The next call overwrites it.
        """
        self._last_settings = self._current_settings()
        self._optimizer_step.set_rates(learning_rates)
        if self._optimizer_step.fused:
            self.recorder.call("the optimiser", self._step, self._state)
        else:
            self._step()
        return self._report

    def _current_settings(self) -> tuple[object, ...]:
        """Return the numbers that a graph would keep from its recording: alphas and dropout."""
        return tuple(getattr(module, name) for module, name in self._settings)

    # --- what CUDA graphs record: these must not read values back ---

    def _add_gradient(self, batch: Batch) -> None:
        """Add gradient and measurements of a batch, on the model's device."""
        result = self.loss(batch)
        loss = result.loss / self._size
        if self._padded_inputs is None:
            loss.backward()
        else:  # into the same memory each time, with one kernel
            gradients = torch.autograd.grad(loss, self.parameters, allow_unused=True)
            parts = [
                (parameter.grad, gradient.contiguous())
                for parameter, gradient in zip(self.parameters, gradients, strict=True)
                if gradient is not None
            ]
            torch._foreach_add_([old for old, _ in parts], [new for _, new in parts])
        # The fields of `OutputLoss` are the first ones of `Report`.
        values = torch.stack([value.detach().to(self.measured) for value in result])
        self.measured[: len(values)] += values
        # The state keeps the autograd graph, whose nodes belong to the stream of their first use.
        self._model.decoder.state.clear()

    def _step(self) -> None:
        """Let the optimiser take its step, fill the report, clear the measurements."""
        norm = self._optimizer_step.take(self.measured[_LOSS])
        self._report[:-1] = self.measured
        self._report[-1] = norm  # the last field of `Report`
        self.measured.zero_()

    # --- what they change, for comparisons ---

    def _sums(self) -> list[Tensor]:
        """Return what `_add_gradient` changes."""
        return [*self._optimizer_step.gradients(), self.measured]

    def _state(self) -> list[Tensor]:
        """Return what `_step` changes."""
        return [*self._optimizer_step.changed(), self.measured, self._report]
