"""The training loop: updates, validation, checkpoints and the end of a run."""

import math
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import partial
from itertools import cycle, islice
from typing import Any

import torch

from onmt_entmax.checkpoint import RunFolder, checkpoint_steps, prune, remember_best
from onmt_entmax.config import TrainingConfig
from onmt_entmax.data.batch import Batch, Shapes
from onmt_entmax.data.stream import Position, TrainingBatches
from onmt_entmax.errors import UserError, named_exhaustion
from onmt_entmax.model import SparseNMTModel, device_of
from onmt_entmax.nn.transformer import learned_alphas
from onmt_entmax.parallel.processes import Processes
from onmt_entmax.train.contexts import collected_signals, frozen_heap, tf32_products
from onmt_entmax.train.log import Log, Standing
from onmt_entmax.train.optimiser import (
    AttentionWarmup,
    MovingAverage,
    build_optimizer,
    learning_rate_schedule,
    learning_rates,
)
from onmt_entmax.train.update import Reports, Update, reason_against

PADDED_ON_CPU = False  # tests set this to train on padded batches without a GPU
MAX_SKIPPED = 100  # updates in a row, after which training stops all the same

Evaluate = Callable[[SparseNMTModel], dict[str, float]]


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    step: int
    reason: str
    signal: int | None = None  # the signal that ended it


def value_at(values: Sequence[Any], starts: Sequence[int], step: int) -> Any:
    """Return the value that holds after `step` updates.

    Args:
        values: such as the numbers of `dropout`.
        starts: the step at which each value starts; as in OpenNMT-py, the first value also holds
            before its own.
        step: updates done.
    """
    started = [value for value, start in zip(values, starts, strict=True) if step >= start]
    return [values[0], *started][-1]


@dataclass
class RunState:
    """State of a run besides weights and optimiser; saved with a checkpoint."""

    step: int = 0  # updates done
    seconds: float = 0.0
    decay: float = 1.0  # factor on the learning rate by decay_method: plateau
    previous_loss: float | None = None  # of the last validation
    best: float | None = None  # best value of `selection`
    best_step: int = -1
    best_planned: float | None = None  # best value in planned validations, for early stopping
    waited: int = 0  # planned validations since `best_planned`
    validated: int = -1  # step of the last validation
    skipped: int = 0  # updates skipped because they were not finite
    validating: float = 0.0  # seconds that the last validation took
    saving: float = 0.0  # seconds that the last checkpoint took

    @property
    def ending(self) -> float:
        """Seconds that a run needs after its last update, as far as is known."""
        return self.validating + self.saving


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
        self.model, self.batches, self.config = model, batches, config
        self.evaluate, self.run, self.log, self.processes = evaluate, run, log, processes
        self.state = RunState()
        self.optimizer = build_optimizer(model, config.optimizer)
        self.schedule = learning_rate_schedule(config.optimizer, config.train_steps)
        self.average = MovingAverage(model, config.average_decay, config.average_every)
        self.warmup = AttentionWarmup(model, config.attention_warmup_steps)
        model.matmul_dtype = torch.bfloat16 if config.matmul_dtype == "bfloat16" else None
        device = device_of(model)
        self.no_graphs: str | None = None  # why a GPU trains without graphs
        shapes = None
        if device.type == "cuda" or PADDED_ON_CPU:
            self.no_graphs = reason_against(model)
            if self.no_graphs is None:
                data = batches.data.config
                shapes = batches.shapes = Shapes(data.batch_size, data.batch_type)
        pads = run.vocabularies.source.pad, run.vocabularies.target.pad
        self.update = Update(model, self.optimizer, config, pads, shapes)
        self._reports = Reports(device)
        self._began = began
        self._started = time.monotonic()
        self._rates = 0.0, 0.0  # of the last update
        self._received = 0  # the signal that any process has received
        self._saved = -1  # the step that this run saved last
        self._saving: float | None = None  # seconds of a checkpoint that `state` does not have yet
        self._skipped = 0  # updates in a row

    def train(self) -> Outcome:
        """Train until a limit of the configuration or a signal; save the last state."""
        self.model.train()
        began = time.monotonic() if self._began is None else self._began
        self._started = began - self.state.seconds
        self._name_best()
        if self.state.step == 0:
            self._log_alphas()
        stream = iter(self.batches)
        alone = self.processes.count == 1
        with frozen_heap(), collected_signals(alone) as received, closing(stream):
            outcome = self._finished()
            while outcome is None:
                epochs = self.batches.position.epoch  # complete ones before the update
                with self.warmup.applied(self.state.step):
                    self._update(stream, received)
                if self._validation_is_due(epochs):
                    self._validate()
                elif self._at(self.config.save_checkpoint_steps):
                    self._save()
                outcome = self._finished()
            if outcome.reason == "max_seconds":
                self._spend_reserve()
            # Signals are still collected here, so that the last state is saved.
            if outcome.signal is None and self.state.validated < self.state.step:
                self._validate(planned=False)
            self._save()
        return outcome

    def timed_updates(self, batches: Sequence[Batch]) -> Iterator[float]:
        """Make updates on these batches, again and again, and yield the seconds of each."""
        self.model.train()
        device, stream = device_of(self.model), cycle(batches)
        while True:
            started = time.monotonic()
            self._update(stream, ())
            if device.type == "cuda":
                torch.cuda.synchronize(device)
            yield time.monotonic() - started

    def _update(self, stream: Iterator[Batch], received: Sequence[int]) -> None:
        """Take one step on the gradient of the next batches of all processes together."""
        config, state, processes, update = self.config, self.state, self.processes, self.update
        began_to_wait = time.monotonic()
        batches = list(islice(stream, value_at(config.accum_count, config.accum_steps, state.step)))
        if self.log is not None:
            self.log.waited(time.monotonic() - began_to_wait)
        if len(config.dropout_steps) > 1:
            self.model.update_dropout(
                value_at(config.dropout, config.dropout_steps, state.step),
                value_at(config.attention_dropout, config.dropout_steps, state.step),
            )
        if self._saving is not None:
            state.saving, self._saving = self._saving, None
        size = self._normaliser(batches)
        with (
            named_exhaustion(
                partial(self.batches.longest_line, batches),
                "leave long lines out with transforms: [filtertoolong], src_seq_length and "
                "tgt_seq_length, or make batch_size smaller",
            ),
            tf32_products(config.matmul_dtype == "tf32"),
        ):
            for batch in batches[processes.rank :: processes.count]:
                update.add(batch, size)
            if received:
                update.measured[4] = received[0]
            if processes.writes:
                update.measured[5] = time.monotonic() - self._started
            processes.sum(update.measured)
            processes.sum_gradients(update.parameters)
            factor = self.schedule(state.step + 1, self._time()) * state.decay
            self._rates = learning_rates(config.optimizer, factor)
            self._reports.send(state.step + 1, update.step(self._rates))
            self.average.update(state.step + 1, update.finite)
        self._read_reports()
        state.step += 1
        self._log()

    def _normaliser(self, batches: Sequence[Batch]) -> int:
        """Return what the loss is divided by: the sentences of batches, or their target tokens."""
        if self.config.normalization != "tokens":
            return sum(map(len, batches))
        lengths = [batch.target_lengths for batch in batches if batch.target_lengths is not None]
        # The start symbol is not predicted.
        return sum(int(of_batch.sum()) - len(of_batch) for of_batch in lengths)

    def _read_reports(self, everything: bool = False) -> None:
        """Add the reports of updates that have arrived from the device.

        Only here does this process wait for the device.

        Raises:
            UserError: an update was not finite, or many in a row, with on_nonfinite "skip".
        """
        for step, values in self._reports.read(everything):
            loss, tokens, correct, support, received, self.state.seconds, norm = values
            if received:  # signal numbers of several processes add up, so the sum names none
                alone = self.processes.count == 1
                self._received = int(received) if alone else signal.SIGTERM
            if math.isfinite(loss) and math.isfinite(norm):
                self._skipped = 0
                if self.log is not None:
                    self.log.add(loss, tokens, correct, support)
                continue
            self.state.skipped += 1
            self._skipped += 1
            if self.config.on_nonfinite != "skip" or self._skipped == MAX_SKIPPED:
                raise self._not_finite(step, loss, norm)

    def _not_finite(self, step: int, loss: float, norm: float) -> UserError:
        """Return the error for an update whose loss or gradient is not finite."""
        what = f"the gradient norm is {norm}" if math.isfinite(loss) else f"the loss is {loss}"
        often = ""
        if self.config.on_nonfinite == "skip":
            often = f" and {MAX_SKIPPED} updates in a row were skipped"
        return UserError(
            f"{what} at step {step}{often}; lower the learning rate, or continue from a "
            f"checkpoint in {self.run.path}"
        )

    def _log(self) -> None:
        """Count an update in the log, and write averages if they are due."""
        if self.log is None:
            return
        standing = self._standing()
        self.log.advance(standing)
        if self._at(self.config.report_every):
            self._log_alphas()
            values = {"learning_rate": self._rates[0], "epoch": self.batches.position.epoch}
            if self.state.skipped:
                values["skipped"] = self.state.skipped
            if reserved := torch.cuda.max_memory_reserved():  # 0 without a GPU
                values["gpu_gb"] = reserved / 1e9
            self.log.training(standing, values)

    def _standing(self) -> Standing:
        """Return how much of the run is done."""
        return Standing(self.state.step, self.batches.epochs, self.state.seconds)

    def _log_alphas(self) -> None:
        """Write the learned alphas to the log, if the model has any."""
        alphas = learned_alphas(self.model)
        if alphas and self.log is not None:
            self.log.alphas(self.state.step, alphas)

    def _time(self) -> float:
        """Return the share of the time for updates that has passed; 0 without a limit.

        The last validation and checkpoint have their share of `max_seconds`.
        """
        limit, state = self.config.max_seconds, self.state
        if limit is None:
            return 0.0
        return min(state.seconds / max(limit - state.ending, 1e-9), 1.0)

    def _spend_reserve(self) -> None:
        """Count the time that was kept for the end as spent, even if the end is quicker.

        Else a resumed run would find some of it left, and make another update.
        """
        assert self.config.max_seconds is not None
        self._started -= max(self.config.max_seconds - self._shared_clock(), 0.0)

    def _shared_clock(self) -> float:
        """Return the seconds of the run, by the first process's clock in all of them."""
        return float(self.processes.from_first(time.monotonic() - self._started))

    def _at(self, steps: int | None) -> bool:
        """Return whether an event of every so many updates is due."""
        return steps is not None and self.state.step % steps == 0

    def _validation_is_due(self, epochs: int) -> bool:
        """Return whether a validation is due, after an update that began with so many epochs."""
        every = self.config.valid_epochs
        if every:
            return self.batches.position.epoch // every > epochs // every
        return self._at(self.config.valid_steps)

    def _validate(self, planned: bool = True) -> None:
        """Evaluate; lower the learning rate if the loss rose; save the model if it is the best.

        The extra validation at the end (not `planned`) changes neither the learning rate nor early
        stopping, so that a resumed run continues as if it had not stopped.
        """
        self._read_reports(everything=True)
        state, config = self.state, self.config
        state.validated = state.step
        if self._saved == state.step:  # that checkpoint lacks this validation
            self._saved = -1
        if self.evaluate is None:
            if config.valid_epochs is not None or self._at(config.save_checkpoint_steps):
                self._save()
            return
        values = self._measured(self.evaluate)
        better = self._judge(values, planned)
        if self.log is not None:
            self.log.paused(state.validating)
            logged = values | {"seconds": round(state.seconds, 1)}
            self.log.validation(self._standing(), logged, state.best_step)
        if better:
            self._save()  # first, so that best.json never names a missing checkpoint
            self._name_best()
        elif self._at(config.save_checkpoint_steps):
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
        values, self.state.validating = self.processes.from_first([values, seconds])
        self.state.seconds = self._shared_clock()
        return dict(values)

    def _judge(self, values: Mapping[str, float], planned: bool) -> bool:
        """Update learning rate, early stopping and the best; return whether the model is it."""
        state, config = self.state, self.config
        value = values[config.selection]
        if planned:
            rose = state.previous_loss is not None and values["loss"] > state.previous_loss
            if rose and config.optimizer.decay_method == "plateau":
                state.decay *= config.optimizer.learning_rate_decay
            state.previous_loss = values["loss"]
        # Of models without one right output, the newest has learned most.
        nothing_right = config.selection != "loss" and value == 0 == state.best
        better = nothing_right or self._better(value, state.best)
        if planned and self._better(value, state.best_planned):
            state.best_planned, state.waited = value, 0
        elif planned:
            state.waited += 1
        if better:
            state.best, state.best_step = value, state.step
        return better

    def _better(self, value: float, best: float | None) -> bool:
        """Return whether a value of `selection` is better; one that is not finite is worst."""
        sign = -1 if self.config.selection == "loss" else 1
        if best is None or sign * value > sign * best:
            return True
        return not math.isfinite(best) and math.isfinite(value)

    def _name_best(self) -> None:
        """Write best.json.

        A resumed run does so too: it may have been killed between saving and naming the best one.
        """
        state, path = self.state, self.run.path
        if not self.processes.writes or state.best is None:
            return
        if state.best_step in checkpoint_steps(path):
            self.run.check()
            remember_best(path, state.best_step, self.config.selection, state.best)
            prune(path, self.run.keep, state.step)  # which kept the best one before

    def _finished(self) -> Outcome | None:
        """Return how the run ended; None if it goes on."""
        state, epoch = self.state, self.batches.position.epoch
        if self._received:
            return Outcome(state.step, signal.Signals(self._received).name, self._received)
        seconds = state.seconds + state.ending
        limit = self.config.reached(state.step, epoch, seconds, state.waited)
        return None if limit is None else Outcome(state.step, limit)

    def _save(self) -> None:
        """Save a checkpoint, unless this step is saved already."""
        if self._saved == self.state.step:
            return
        self._read_reports(everything=True)
        started = time.monotonic()
        saved = self.state_dict()  # collective: gathers the random states of all processes
        if self.processes.writes:
            with self.average.applied() as raw:
                self.run.save(self.state.step, self.model, saved | {"raw_weights": raw})
        self._saved = self.state.step
        # Not in `state` before the next update: until then, whether the run has ended must follow
        # from what was saved, as a resumed run has nothing else to tell by.
        self._saving = float(self.processes.from_first(time.monotonic() - started))
        self.state.seconds = self._shared_clock()

    def state_dict(self) -> dict[str, Any]:
        """Return what resuming needs besides the weights: tensors, numbers and dicts."""
        device, on_gpu = device_of(self.model), torch.empty(0)
        if device.type == "cuda":
            on_gpu = torch.cuda.get_rng_state(device)
        return {
            "run": asdict(self.state),
            "position": asdict(self.batches.position),
            # Not the groups: learning rates and the like are the configuration's.
            "optimizer": self.optimizer.state_dict()["state"],
            "random": {
                "cpu": self.processes.gather(torch.random.get_rng_state()),
                "cuda": self.processes.gather(on_gpu),
            },
        }

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Restore what `state_dict` returned; random states only for as many processes."""
        self.state = RunState(**saved["run"])
        if self.state.step in checkpoint_steps(self.run.path):
            self._saved = self.state.step  # this checkpoint itself
        self.batches.position = Position(**saved["position"])
        groups = self.optimizer.state_dict()["param_groups"]
        self.optimizer.load_state_dict({"state": saved["optimizer"], "param_groups": groups})
        self.average.restore(saved.get("raw_weights"))
        states, rank = saved["random"], self.processes.rank
        if len(states["cpu"]) == self.processes.count:
            torch.random.set_rng_state(states["cpu"][rank])
            if len(states["cuda"][rank]) and device_of(self.model).type == "cuda":
                torch.cuda.set_rng_state(states["cuda"][rank], device_of(self.model))
