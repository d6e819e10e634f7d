"""The training loop: updates, validation, checkpoints and the end of a run.

`run_training` sets a `Trainer` up. Parts with a state of their own are apart: an update of the run
(`TrainingStep`), the `Clock` and the `Selection` of the best model; `state.py` says what a
checkpoint keeps of them.
"""

import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from itertools import cycle
from typing import Any

import torch

from onmt_entmax.checkpoint import checkpoint_steps
from onmt_entmax.config import TrainingConfig
from onmt_entmax.data.batch import Batch
from onmt_entmax.data.shapes import Shapes
from onmt_entmax.data.stream import Position, TrainingBatches
from onmt_entmax.model import SparseNMTModel, device_of
from onmt_entmax.nn.transformer import learned_alphas
from onmt_entmax.parallel.processes import Processes
from onmt_entmax.train.attention_warmup import AttentionWarmup
from onmt_entmax.train.calibration import multiplied, restore_output
from onmt_entmax.train.clock import Clock
from onmt_entmax.train.contexts import collected_signals, frozen_heap
from onmt_entmax.train.log import Log
from onmt_entmax.train.nonfinite import NonFiniteUpdates
from onmt_entmax.train.padded import reason_against
from onmt_entmax.train.progress import Progress
from onmt_entmax.train.run_folder import RunFolder, prune, remember_best
from onmt_entmax.train.selection import Selection
from onmt_entmax.train.state import RunState, random_states, restore_random_states
from onmt_entmax.train.training_step import TrainingStep

PADDED_ON_CPU = False  # tests set this to train on padded batches without a GPU
MAX_SKIPPED = 100  # updates in a row, after which training stops all the same

Evaluate = Callable[[SparseNMTModel], dict[str, float]]
"""Returns the measures of a model on the development set, by name"""


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    step: int
    reason: str
    signal: int | None = None  # the signal that ended it


class Trainer:
    """One training run.

    Args:
        model: trained in place, on its device.
        batches: the endless stream of training batches.
        config: see `TrainingConfig`.
        evaluate: returns at least `loss` and the selection measure on the development set. It is
            called in evaluation mode without gradients. None: no validation.
        run: the folder for checkpoints.
        log: None in all processes but the first.
        processes: the processes of the run.
        began: when the command began, in seconds of `time.monotonic`, from which its time counts;
            None: when `train` is called.

    Attributes:
        state: counters.
        clock: the time of the run.
        selection: the best model so far.
        optimizer: of the trained weights.
        average: the moving average of the weights, which is evaluated and saved.
        update: gradient and step of given batches.
        no_graphs: why a GPU trains without CUDA graphs, or None.
    """

    def __init__(
        self,
        model: SparseNMTModel,
        batches: TrainingBatches,
        config: TrainingConfig,
        evaluate: Evaluate | None,
        run: RunFolder,
        log: Log | None,
        processes: Processes,
        began: float | None = None,
    ) -> None:
        self.model = model
        self.batches = batches
        self.config = config
        self.evaluate = evaluate
        self.run = run
        self.log = log
        self.processes = processes
        self.state = RunState()
        self.clock = Clock(config.max_seconds, processes)
        self.selection = Selection(config.selection)
        model.matmul_dtype = torch.bfloat16 if config.matmul_dtype == "bfloat16" else None

        self._device = device_of(model)
        # CUDA graphs need batches of few shapes: batches are padded wherever graphs can be.
        pads_batches = self._device.type == "cuda" or PADDED_ON_CPU
        self.no_graphs = reason_against(model) if pads_batches else None
        shapes = None
        if pads_batches and self.no_graphs is None:
            data = batches.data.config
            shapes = Shapes(data.batch_size, data.batch_type)
            batches.shapes = shapes  # sentences are grouped to fill them
        skip = config.on_nonfinite == "skip"
        self._training_step = TrainingStep(
            model=model,
            batches=batches,
            config=config,
            vocabularies=run.vocabularies,
            shapes=shapes,
            state=self.state,
            clock=self.clock,
            nonfinite=NonFiniteUpdates(skip, MAX_SKIPPED, run.path),
            log=log,
            processes=processes,
            device=self._device,
        )
        self.optimizer = self._training_step.optimizer
        self.average = self._training_step.average
        self.update = self._training_step.update
        self._reports = self._training_step.reports  # tests let them arrive late, as on a GPU
        self._warmup = AttentionWarmup(model, config.attention_warmup_steps)
        self._began = began
        self._saved = -1  # the step that this run saved last; -1: none, or it must be saved again

    def train(self) -> Outcome:
        """Train until a limit of the configuration or a signal; save the last state."""
        self.model.train()
        self.clock.start(self._began)
        # A resumed run may have been killed between saving its best checkpoint and naming it.
        self._name_best()
        if self.state.step == 0:
            self._log_alphas()
        stream = iter(self.batches)
        alone = self.processes.count == 1
        with frozen_heap(), collected_signals(alone) as received, closing(stream):
            outcome = self._finished()
            while outcome is None:
                epochs_before = self.batches.position.epoch  # complete ones
                with self._warmup.applied(self.state.step):
                    self._training_step.take(stream, received)
                self._write_log()
                if self._validation_is_due(epochs_before):
                    self._validate()
                elif self._is_due(self.config.save_checkpoint_steps):
                    self._save()
                outcome = self._finished()
            if outcome.reason == "max_seconds":
                self.clock.spend_reserve()
            # Signals are still collected here, so that the last state is saved.
            if outcome.signal is None and self.state.validated < self.state.step:
                self._validate(planned=False)
            self._save()
        return outcome

    def timed_updates(self, batches: Sequence[Batch]) -> Iterator[float]:
        """Make updates on these batches, again and again, and yield the seconds of each."""
        self.model.train()
        stream = cycle(batches)
        while True:
            started = time.monotonic()
            self._training_step.take(stream, received=())
            if self._device.type == "cuda":
                torch.cuda.synchronize(self._device)
            yield time.monotonic() - started

    # --- the log ---

    def _write_log(self) -> None:
        """Count an update in the log, and write averages if they are due."""
        if self.log is None:
            return
        progress = self._progress()
        self.log.advance(progress)
        if self._is_due(self.config.report_every):
            self._log_alphas()
            reserved = torch.cuda.max_memory_reserved()  # 0 without a GPU
            self.log.training(
                progress,
                learning_rate=self._training_step.learning_rate,
                epoch=self.batches.position.epoch,
                skipped=self.state.skipped or None,
                gpu_gb=reserved / 1e9 if reserved else None,
            )

    def _progress(self) -> Progress:
        """Return how much of the run is done."""
        return Progress(self.state.step, self.batches.epochs, self.clock.seconds)

    def _log_alphas(self) -> None:
        """Write the learned alphas to the log, if the model has any."""
        alphas = learned_alphas(self.model)
        if alphas and self.log is not None:
            self.log.alphas(self.state.step, alphas)

    # --- validation ---

    def _is_due(self, every: int | None) -> bool:
        """Return whether an event of every so many updates is due; None: never."""
        return every is not None and self.state.step % every == 0

    def _validation_is_due(self, epochs_before: int) -> bool:
        """Return whether a validation is due after an update, which may have ended an epoch."""
        every = self.config.valid_epochs
        if every:
            return self.batches.position.epoch // every > epochs_before // every
        return self._is_due(self.config.valid_steps)

    def _validate(self, planned: bool = True) -> None:
        """Evaluate; lower the learning rate if the loss rose; save the model if it is the best.

        The extra validation at the end (not `planned`) changes neither the learning rate nor early
        stopping, so that a resumed run continues as if it had not stopped.
        """
        state, config = self.state, self.config
        self._training_step.read_reports(everything=True)
        state.validated = state.step
        if self._saved == state.step:  # that checkpoint lacks this validation
            self._saved = -1
        if self.evaluate is None:
            if config.valid_epochs is not None or self._is_due(config.save_checkpoint_steps):
                self._save()
            return
        values = self._measured(self.evaluate)
        state.output_factor = values.get("output_factor", 1.0)
        if planned:
            self._decay(values["loss"])
        is_best = self.selection.judge(values[config.selection], state.step, planned)
        if self.log is not None:
            self.log.paused(self.clock.validating)
            logged = values | {"seconds": round(self.clock.seconds, 1)}
            self.log.validation(self._progress(), logged, self.selection.best_step)
        if is_best:
            self._save()  # first, so that best.json never names a missing checkpoint
            self._name_best()
        elif self._is_due(config.save_checkpoint_steps):
            self._save()

    def _measured(self, evaluate: Evaluate) -> dict[str, float]:
        """Return the measures on the development set, in all processes."""
        values: Any = None
        started = time.monotonic()
        if self.processes.writes:
            self.model.eval()
            with torch.no_grad(), self.average.applied():
                values = evaluate(self.model)
            self.model.train()
        seconds = time.monotonic() - started
        values, self.clock.validating = self.processes.from_first([values, seconds])
        self.clock.share()
        return dict(values)

    def _decay(self, loss: float) -> None:
        """Lower the learning rate of decay_method: plateau, if the loss of a validation rose."""
        state = self.state
        optimizer = self.config.optimizer
        rose = state.previous_loss is not None and loss > state.previous_loss
        if rose and optimizer.decay_method == "plateau":
            state.decay *= optimizer.learning_rate_decay
        state.previous_loss = loss

    def _name_best(self) -> None:
        """Write best.json, if there is a best checkpoint; delete the one that was the best."""
        selection = self.selection
        path = self.run.path
        if not self.processes.writes or selection.best is None:
            return
        if selection.best_step in checkpoint_steps(path):
            self.run.check()
            remember_best(path, selection.best_step, selection.measure, selection.best)
            prune(path, self.run.keep, self.state.step)

    # --- the end, and checkpoints ---

    def _finished(self) -> Outcome | None:
        """Return how the run ended; None if it goes on."""
        step, epoch = self.state.step, self.batches.position.epoch
        received = self._training_step.received
        if received:
            return Outcome(step, signal.Signals(received).name, received)
        limit = self.config.reached(step, epoch, self.clock.at_end(), self.selection.waited)
        return None if limit is None else Outcome(step, limit)

    def _save(self) -> None:
        """Save a checkpoint, unless this step is saved already."""
        if self._saved == self.state.step:
            return
        self._training_step.read_reports(everything=True)
        started = time.monotonic()
        saved = self.state_dict()  # collective: gathers the random states of all processes
        if self.processes.writes:
            with (
                self.average.applied() as raw,
                multiplied(self.model.generator, self.state.output_factor) as raw_output,
            ):
                saved |= {"raw_weights": raw, "raw_output": raw_output}
                self.run.save(self.state.step, self.model, saved)
        self._saved = self.state.step
        self.clock.saved(time.monotonic() - started)

    def state_dict(self) -> dict[str, Any]:
        """Return what resuming needs besides the weights; `state.py` describes it.

        `_save` adds the raw weights, which exist only while it saves their average or the
        calibrated output.
        """
        return {
            "run": self.state.state_dict() | self.clock.state_dict() | self.selection.state_dict(),
            "position": asdict(self.batches.position),
            # Not the groups: learning rates and the like are the configuration's.
            "optimizer": self.optimizer.state_dict()["state"],
            "random": random_states(self.processes, self._device),
        }

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Restore what `_save` saved; random states only for as many processes."""
        self.state.load_state_dict(saved["run"])
        self.clock.load_state_dict(saved["run"])
        self.selection.load_state_dict(saved["run"])
        if self.state.step in checkpoint_steps(self.run.path):
            self._saved = self.state.step  # this checkpoint itself
        self.batches.position = Position(**saved["position"])
        groups = self.optimizer.state_dict()["param_groups"]
        self.optimizer.load_state_dict({"state": saved["optimizer"], "param_groups": groups})
        restore_output(self.model.generator, saved.get("raw_output"))
        self.average.restore(saved.get("raw_weights"))
        restore_random_states(saved["random"], self.processes, self._device)
