"""The training loop, from top to bottom."""

from __future__ import annotations

import gc
import math
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

import torch
from torch import Tensor, nn

from onmt_entmax.checkpoint import RunFolder, remember_best
from onmt_entmax.errors import UserError
from onmt_entmax.model import SparseNMTModel, device_of
from onmt_entmax.modules.output import OutputLoss
from onmt_entmax.records import Records
from onmt_entmax.text.batch import Batch
from onmt_entmax.text.corpus import Position, TrainingBatches
from onmt_entmax.training.interrupt import collected_signals
from onmt_entmax.training.optimizer import (
    OptimizerConfig,
    build_optimizer,
    learning_rate_schedule,
)
from onmt_entmax.training.processes import Processes

Evaluate = Callable[[SparseNMTModel], dict[str, float]]


class TrainingError(UserError):
    """Training cannot go on; the message says at which step and why."""


@dataclass(frozen=True)
class TrainingConfig:
    """When to stop, validate and save; names as in OpenNMT-py where it has one."""

    optimizer: OptimizerConfig
    train_steps: int | None = 100000
    train_epochs: int | None = None
    max_seconds: float | None = None  # of training, validation included, resumed runs added up
    valid_steps: int | None = 10000
    valid_epochs: int | None = None
    save_checkpoint_steps: int = 5000
    early_stopping: int = 0  # validations without a better `selection`; 0 never stops early
    selection: str = "loss"  # loss, token_accuracy or exact_match: what makes a model the best
    accum_count: tuple[int, ...] = (1,)
    accum_steps: tuple[int, ...] = (0,)
    normalization: str = "sents"
    label_smoothing: float = 0.0
    dropout: tuple[float, ...] = (0.3,)
    attention_dropout: tuple[float, ...] = (0.1,)
    dropout_steps: tuple[int, ...] = (0,)
    report_every: int = 50


@dataclass
class RunState:
    """What changes while training, apart from weights and optimiser; saved with a checkpoint."""

    step: int = 0  # updates done
    seconds: float = 0.0
    decay: float = 1.0  # what the plateau rule has made of the learning rate
    previous_loss: float | None = None  # of the last validation
    best: float | None = None  # best value of the selection metric
    waited: int = 0  # validations since the best one
    validated: int = -1  # step of the last validation


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    step: int
    reason: str
    signal: int | None = None  # the signal that ended it


def _value_at(values: Sequence[Any], starts: Sequence[int], step: int) -> Any:
    """The value in force after `step` updates, where each value has a step it starts at."""
    return [value for value, start in zip(values, starts, strict=True) if step >= start][-1]


class _Objective(nn.Module):
    """The loss of a batch as a module, which is what DistributedDataParallel wraps."""

    def __init__(self, model: SparseNMTModel, pad: int, label_smoothing: float) -> None:
        super().__init__()
        self.model, self.pad, self.label_smoothing = model, pad, label_smoothing

    def forward(self, batch: Batch) -> OutputLoss:
        hidden, target = self.model.hidden_states(batch)
        return self.model.generator.loss(hidden, target, self.pad, self.label_smoothing)


class Trainer:
    """One training run.

    Args:
        model: trained in place, on the device it is on.
        batches: the endless stream of training batches.
        config: see `TrainingConfig`.
        evaluate: measures the model on the development set; gives at least `loss` and the
            selection metric. Called in evaluation mode without gradients.
        run: where checkpoints go.
        records: where measurements go; None in all processes but the first.
        processes: of which this is one.
    """

    def __init__(
        self,
        model: SparseNMTModel,
        batches: TrainingBatches,
        config: TrainingConfig,
        evaluate: Evaluate | None,
        run: RunFolder,
        records: Records | None,
        processes: Processes,
    ) -> None:
        self.model, self.batches, self.config = model, batches, config
        self.evaluate, self.run, self.records = evaluate, run, records
        self.processes = processes
        self.state = RunState()
        self.optimizer = build_optimizer(model, config.optimizer)
        self.schedule = learning_rate_schedule(config.optimizer, config.train_steps)
        self.parameters = [p for p in model.parameters() if p.requires_grad]
        objective = _Objective(model, run.vocabularies.target.pad, config.label_smoothing)
        self.objective = processes.share(objective, device_of(model))
        self._seen = _Averages()
        self._saved = -1  # the step last saved by this run

    def train(self) -> Outcome:
        """Train until a limit of the configuration or a signal; the last state is saved."""
        self.model.train()
        # What is loaded by now stays; the collector need not walk over it during training.
        gc.collect()
        gc.freeze()
        stream = iter(self.batches)
        started = time.monotonic() - self.state.seconds
        with collected_signals() as received:
            outcome = self._finished(0)
            while outcome is None:
                epochs = self.batches.position.epoch
                accumulate = _value_at(
                    self.config.accum_count, self.config.accum_steps, self.state.step
                )
                asked = self._update(list(islice(stream, accumulate)), received)
                self.state.seconds = self.processes.from_first(time.monotonic() - started)
                if self._due(epochs):
                    self._validate()
                elif self.state.step % self.config.save_checkpoint_steps == 0:
                    self._save()
                outcome = self._finished(asked)
        if outcome.signal is None and self.state.validated < self.state.step:
            self._validate()
        self._save()
        return outcome

    # --- one update ------------------------------------------------------------------------

    def _update(self, batches: Sequence[Batch], received: Sequence[int]) -> int:
        """One step of the optimiser on the gradient of all `batches` together.

        Returns:
            The signal that any process has received, or 0; all of them learn of it here.
        """
        config, state, processes = self.config, self.state, self.processes
        self._set_dropout()
        for group in self.optimizer.param_groups:
            group["lr"] = self._learning_rate(state.step + 1)
        by_tokens = config.normalization == "tokens"
        size = sum(_target_tokens(batch) if by_tokens else len(batch) for batch in batches)
        mine = batches[processes.rank :: processes.count]
        self.optimizer.zero_grad(set_to_none=True)
        measured = torch.zeros(5, device=device_of(self.model))
        for number, batch in enumerate(mine, 1):
            # DistributedDataParallel averages where a sum is meant, hence the factor.
            with self._apart() if number < len(mine) else nullcontext():
                result = self.objective(batch.to(device_of(self.model)))
                (result.loss * (processes.count / size)).backward()
            measured[:4] += torch.stack([value.detach().float() for value in result])
        measured[4] = received[0] if received else 0
        loss, tokens, correct, support, asked = processes.sum(measured).tolist()
        if not math.isfinite(loss):
            raise TrainingError(
                f"the loss is {loss} at step {state.step + 1}; lower the learning rate, or "
                f"continue from a checkpoint in {self.run.path}"
            )
        self._seen.add(loss, tokens, correct, support)
        if config.optimizer.max_grad_norm > 0:
            torch.nn.utils.clip_grad_norm_(self.parameters, config.optimizer.max_grad_norm)
        self.optimizer.step()
        state.step += 1
        self._report()
        # Signals of several processes add up; whichever it was, the run ends.
        return int(asked) if processes.count == 1 or not asked else signal.SIGTERM

    def _apart(self) -> AbstractContextManager[None]:
        """Accumulate without exchanging gradients yet."""
        if isinstance(self.objective, nn.parallel.DistributedDataParallel):
            return self.objective.no_sync()
        return nullcontext()

    def _report(self) -> None:
        if self.records is None:
            return
        self.records.advance()
        if self.state.step % self.config.report_every == 0:
            rate = self._learning_rate(self.state.step)
            epoch = self.batches.position.epoch
            values = self._seen.take() | {"learning_rate": rate, "epoch": epoch}
            self.records.training(self.state.step, values)

    def _learning_rate(self, step: int) -> float:
        return self.config.optimizer.learning_rate * self.schedule(step) * self.state.decay

    def _set_dropout(self) -> None:
        config, step = self.config, self.state.step
        if len(config.dropout_steps) > 1:
            self.model.update_dropout(
                _value_at(config.dropout, config.dropout_steps, step),
                _value_at(config.attention_dropout, config.dropout_steps, step),
            )

    # --- validation and the end ------------------------------------------------------------

    def _due(self, epochs_before: int) -> bool:
        config, epoch = self.config, self.batches.position.epoch
        if config.valid_epochs is not None:
            return epoch // config.valid_epochs > epochs_before // config.valid_epochs
        return config.valid_steps is not None and self.state.step % config.valid_steps == 0

    def _validate(self) -> None:
        """Measure, lower the learning rate if the loss rose, and keep the model if it is best."""
        state, config = self.state, self.config
        state.validated = state.step
        if self.evaluate is None:
            self._save()
            return
        values = self.processes.from_first(self._measure() if self.processes.writes else None)
        rose = state.previous_loss is not None and values["loss"] > state.previous_loss
        if rose and config.optimizer.decay_method == "plateau":
            state.decay *= config.optimizer.learning_rate_decay
        state.previous_loss = values["loss"]
        value = values[config.selection]
        sign = -1 if config.selection == "loss" else 1
        better = state.best is None or sign * value > sign * state.best
        state.waited = 0 if better else state.waited + 1
        if better:
            state.best = value
        if self.records is not None:
            self.records.validation(state.step, values | {"seconds": round(state.seconds, 1)})
        if better:
            self._save()  # before it is named the best, so that the name never points at nothing
            if self.processes.writes:
                remember_best(self.run.path, state.step, config.selection, value)
        elif state.step % config.save_checkpoint_steps == 0:
            self._save()

    def _measure(self) -> dict[str, float]:
        assert self.evaluate is not None
        self.model.eval()
        with torch.no_grad():
            values = self.evaluate(self.model)
        self.model.train()
        return values

    def _finished(self, asked: int) -> Outcome | None:
        config, state = self.config, self.state
        if asked:
            return Outcome(state.step, signal.Signals(asked).name, asked)
        if config.train_steps is not None and state.step >= config.train_steps:
            return Outcome(state.step, "train_steps")
        if config.train_epochs is not None and self.batches.position.epoch >= config.train_epochs:
            return Outcome(state.step, "train_epochs")
        if config.max_seconds is not None and state.seconds >= config.max_seconds:
            return Outcome(state.step, "max_seconds")
        if 0 < config.early_stopping <= state.waited:
            return Outcome(state.step, "early_stopping")
        return None

    # --- checkpoints -----------------------------------------------------------------------

    def _save(self) -> None:
        if self._saved == self.state.step:
            return
        saved = self.state_dict()  # all processes give their random states
        if self.processes.writes:
            self.run.save(self.state.step, self.model, saved)
        self._saved = self.state.step

    def state_dict(self) -> dict[str, Any]:
        """Everything that continuing needs, as tensors, numbers and dicts."""
        return {
            "run": asdict(self.state),
            "position": asdict(self.batches.position),
            "optimizer": self.optimizer.state_dict(),
            "random": {
                "cpu": self.processes.gather(torch.random.get_rng_state()),
                "cuda": self.processes.gather(self._cuda_state()),
            },
        }

    def _cuda_state(self) -> Tensor:
        device = device_of(self.model)
        return torch.cuda.get_rng_state(device) if device.type == "cuda" else torch.empty(0)

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Continue from what `state_dict` gave: the same batches and, if there are as many
        processes as there were, the same random states."""
        self.state = RunState(**saved["run"])
        self.batches.position = Position(**saved["position"])
        self.optimizer.load_state_dict(saved["optimizer"])
        states, rank = saved["random"], self.processes.rank
        if len(states["cpu"]) == self.processes.count:
            torch.random.set_rng_state(states["cpu"][rank])
            if len(states["cuda"][rank]) and device_of(self.model).type == "cuda":
                torch.cuda.set_rng_state(states["cuda"][rank], device_of(self.model))


def _target_tokens(batch: Batch) -> int:
    assert batch.target_lengths is not None, "training batches have targets"
    return int(batch.target_lengths.sum()) - len(batch)  # the start symbol is not predicted


class _Averages:
    """Running averages of what the output layer reports, for the log."""

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self._loss = self._tokens = self._correct = self._support = 0.0
        self._since = time.monotonic()

    def add(self, loss: float, tokens: float, correct: float, support: float) -> None:
        self._loss += loss
        self._tokens += tokens
        self._correct += correct
        self._support += support

    def take(self) -> dict[str, float]:
        """Averages a target token since the last call."""
        tokens = max(self._tokens, 1.0)
        averages = {
            "loss": self._loss / tokens,
            "token_accuracy": 100 * self._correct / tokens,
            "support": self._support / tokens,
            "tokens_per_second": self._tokens / (time.monotonic() - self._since),
        }
        self._reset()
        return averages
