"""The training loop: updates, validations and checkpoints, until a limit or a signal ends it.

`run_training` makes a `Trainer`. The parts of a run are in other files: an update
(`training_step.py`), the reports of updates (`monitor.py`), validations (`validation.py`) and
checkpoints (`checkpoints.py`).
"""

import signal
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

import torch

from onmt_entmax.config import TrainingConfig
from onmt_entmax.data.batch import Batch
from onmt_entmax.data.garbage_collection import frozen_heap
from onmt_entmax.data.stream import TrainingBatches
from onmt_entmax.model import SparseNMTModel, device_of
from onmt_entmax.nn.transformer import learned_alphas
from onmt_entmax.parallel.processes import Processes
from onmt_entmax.train.attention_warmup import AttentionWarmup
from onmt_entmax.train.checkpoints import Checkpoints
from onmt_entmax.train.clock import Clock
from onmt_entmax.train.log import Log
from onmt_entmax.train.monitor import Monitor
from onmt_entmax.train.moving_average import MovingAverage
from onmt_entmax.train.nonfinite import NonFiniteUpdates
from onmt_entmax.train.optimiser import build_optimizer
from onmt_entmax.train.padding import padding_for
from onmt_entmax.train.random_generators import RandomGenerators
from onmt_entmax.train.run_folder import RunFolder
from onmt_entmax.train.saved_state import SavedState
from onmt_entmax.train.selection import Selection
from onmt_entmax.train.signals import collected_signals
from onmt_entmax.train.state import Counters, TrainingState
from onmt_entmax.train.training_step import TrainingStep
from onmt_entmax.train.validation import Evaluate, Validation


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
        evaluate: measures a model on the development set, see `Validation`. None: no validation.
        run: the folder for checkpoints.
        log: None in all processes but the first.
        processes: the processes of the run.

    Attributes:
        state: what a checkpoint keeps besides the weights.
        monitor: reads the reports of updates.
        training_step: makes an update.
        validation: None without a development set.
        checkpoints: saves them.
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
    ) -> None:
        self.model = model
        self._config = config
        self._log = log
        self._alone = processes.count == 1
        model.matmul_dtype = torch.bfloat16 if config.matmul_dtype == "bfloat16" else None
        device = device_of(model)
        shapes, self.no_graphs = padding_for(model, batches.data.config)
        if shapes is not None:
            batches.shapes = shapes  # sentences are grouped to fill them
        self.state = TrainingState(
            counters=Counters(),
            clock=Clock(config.max_seconds, processes),
            selection=Selection(config.selection),
            batches=batches,
            optimizer=build_optimizer(model, config.optimizer),
            average=MovingAverage(model, config.average_decay, config.average_every),
            generators=RandomGenerators(processes, device),
        )
        nonfinite = NonFiniteUpdates(config.on_nonfinite == "skip", run.path)
        self.monitor = Monitor(
            device, state=self.state, nonfinite=nonfinite, log=log, processes=processes
        )
        self.training_step = TrainingStep(
            model=model,
            config=config,
            shapes=shapes,
            state=self.state,
            monitor=self.monitor,
            log=log,
            processes=processes,
        )
        self._warmup = AttentionWarmup(model, config.attention_warmup_steps)
        self.validation = None
        if evaluate is not None:
            self.validation = Validation(
                evaluate,
                model=model,
                config=config,
                state=self.state,
                log=log,
                processes=processes,
            )
        self.checkpoints = Checkpoints(run, model, self.state, processes)

    def load_state_dict(self, saved: SavedState) -> None:
        """Resume from the training state of a checkpoint, whose weights the model has."""
        self.checkpoints.restore(saved)

    def train(self, began: float | None = None) -> Outcome:
        """Train until a limit of the configuration or a signal; save the last state.

        Args:
            began: when the command began, in seconds of `time.monotonic`, from which its time
                counts; None: now.
        """
        self.model.train()
        self.state.clock.start(began)
        # A resumed run may have been killed between saving its best checkpoint and naming it.
        self.checkpoints.name_best()
        if self.state.counters.step == 0:
            self._log_alphas()
        stream = iter(self.state.batches)
        with frozen_heap(), collected_signals(self._alone) as received, closing(stream):
            outcome = self._outcome()
            while outcome is None:
                self._update(stream, received)
                outcome = self._outcome()
            if outcome.reason == "max_seconds":
                self.state.clock.spend_reserve()
            # Signals are still collected here, so that the last state is saved.
            if outcome.signal is None and self.state.counters.validated < outcome.step:
                self._validate(planned=False)
            self._save()
        return outcome

    def _update(self, stream: Iterator[Batch], received: Sequence[int]) -> None:
        """Make an update; validate and save, if that is due."""
        epochs_before = self.state.batches.position.epoch
        with self._warmup.applied(self.state.counters.step):
            self.training_step.take(stream, received)
        self._write_log()
        saves = self._is_due(self._config.save_checkpoint_steps)
        if self._validation_is_due(epochs_before) and self._validate():
            saves = True
        if saves:
            self._save()

    def _outcome(self) -> Outcome | None:
        """Return how the run ended; None if it goes on."""
        step, epoch = self.state.counters.step, self.state.batches.position.epoch
        received = self.monitor.received_signal
        if received:
            return Outcome(step, signal.Signals(received).name, received)
        seconds, waited = self.state.clock.at_end(), self.state.selection.waited
        limit = self._config.reached(step, epoch, seconds, waited)
        return None if limit is None else Outcome(step, limit)

    # --- validations and checkpoints ---

    def _is_due(self, every: int | None) -> bool:
        """Return whether an event is due that comes after every `every` updates; None: never."""
        return every is not None and self.state.counters.step % every == 0

    def _validation_is_due(self, epochs_before: int) -> bool:
        """Return whether a validation is due after an update, which may have ended an epoch."""
        every = self._config.valid_epochs
        if every:
            return self.state.batches.position.epoch // every > epochs_before // every
        return self._is_due(self._config.valid_steps)

    def _validate(self, planned: bool = True) -> bool:
        """Validate the model; return whether it is to be saved, as the best so far.

        Without a development set nothing is measured, and `valid_epochs` says when to save.

        Args:
            planned: see `Validation.run`.
        """
        self.monitor.read(everything=True)
        self.state.counters.begin_validation()
        if self.validation is None:
            return self._config.valid_epochs is not None
        return self.validation.run(planned)

    def _save(self) -> None:
        """Save the state after all updates so far, unless it is saved already."""
        self.monitor.read(everything=True)
        self.checkpoints.save()

    # --- the log ---

    def _write_log(self) -> None:
        """Count an update in the log, and write averages if they are due."""
        if self._log is None:
            return
        progress = self.state.progress
        self._log.advance(progress)
        if self._is_due(self._config.report_every):
            self._log_alphas()
            reserved = torch.cuda.max_memory_reserved()  # 0 without a GPU
            self._log.training(
                progress,
                learning_rate=self.training_step.learning_rate,
                epoch=self.state.batches.position.epoch,
                skipped=self.state.counters.skipped or None,
                gpu_gb=reserved / 1e9 if reserved else None,
            )

    def _log_alphas(self) -> None:
        """Write the learned alphas to the log, if the model has any."""
        alphas = learned_alphas(self.model)
        if alphas and self._log is not None:
            self._log.alphas(self.state.counters.step, alphas)
