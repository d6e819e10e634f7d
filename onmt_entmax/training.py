"""The training loop, from top to bottom."""

from __future__ import annotations

import functools
import math
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import islice
from types import FrameType
from typing import Any

import torch

from onmt_entmax.checkpoint import RunFolder, remember_best
from onmt_entmax.errors import UserError
from onmt_entmax.model import SparseNMTModel, device_of
from onmt_entmax.opennmt import build_torch_optimizer, make_learning_rate_decay_fn
from onmt_entmax.records import Records
from onmt_entmax.text.batch import Batch
from onmt_entmax.text.corpus import Position, TrainingBatches

Evaluate = Callable[[SparseNMTModel], dict[str, float]]


class TrainingError(UserError):
    """Training cannot go on; the message says at which step and why."""


@dataclass(frozen=True)
class OptimizerConfig:
    """How a step is taken; the names are OpenNMT-py's options (its functions read them)."""

    optim: str = "sgd"
    learning_rate: float = 1.0
    learning_rate_decay: float = 0.5
    decay_method: str = "none"  # none, noam, noamwd, rsqrt (OpenNMT-py's), plateau, cosine (ours)
    start_decay_steps: int = 50000
    decay_steps: int = 10000
    warmup_steps: int = 4000
    adam_beta1: float = 0.9
    adam_beta2: float = 0.999
    adagrad_accumulator_init: float = 0.0
    max_grad_norm: float = 5.0
    rnn_size: int = 500  # the model size in the schedules noam and noamwd


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


def learning_rate_schedule(config: OptimizerConfig, last: int | None) -> Callable[[int], float]:
    """The factor on the learning rate for update number 1, 2, ...

    Args:
        config: `cosine` warms up linearly over `warmup_steps` and falls to zero at `last`;
            `plateau` is flat (validation lowers it); the rest are OpenNMT-py's.
        last: the last update, which `cosine` needs.
    """
    if config.decay_method == "plateau":
        return lambda step: 1.0
    if config.decay_method == "cosine":
        assert last is not None, "the configuration asks for train_steps with cosine"
        return functools.partial(_cosine, warmup=config.warmup_steps, last=last)
    decay: Callable[[int], float] = make_learning_rate_decay_fn(config)
    return decay


def _cosine(step: int, warmup: int, last: int) -> float:
    if step <= warmup:
        return step / warmup
    return 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(last - warmup, 1)))


def _value_at(values: Sequence[Any], starts: Sequence[int], step: int) -> Any:
    """The value in force after `step` updates, where each value has a step it starts at."""
    return [value for value, start in zip(values, starts, strict=True) if step >= start][-1]


class Trainer:
    """One training run.

    Args:
        model: trained in place, on the device it is on.
        batches: the endless stream of training batches.
        config: see `TrainingConfig`.
        evaluate: measures the model on the development set; gives at least `loss` and the
            selection metric. Called in evaluation mode without gradients.
        run: where checkpoints go.
        records: where measurements go.
    """

    def __init__(
        self,
        model: SparseNMTModel,
        batches: TrainingBatches,
        config: TrainingConfig,
        evaluate: Evaluate | None,
        run: RunFolder,
        records: Records,
    ) -> None:
        self.model, self.batches, self.config = model, batches, config
        self.evaluate, self.run, self.records = evaluate, run, records
        self.state = RunState()
        self.optimizer = build_torch_optimizer(model, config.optimizer)
        self.schedule = learning_rate_schedule(config.optimizer, config.train_steps)
        self.parameters = [p for p in model.parameters() if p.requires_grad]
        self._seen = _Averages()
        self._saved = -1  # the step last saved by this run

    def train(self) -> Outcome:
        """Train until a limit of the configuration or a signal; the last state is saved."""
        self.model.train()
        stream = iter(self.batches)
        started = time.monotonic() - self.state.seconds
        with _signals() as received:
            outcome = self._finished()
            while outcome is None:
                epochs = self.batches.position.epoch
                accumulate = _value_at(
                    self.config.accum_count, self.config.accum_steps, self.state.step
                )
                self._update(list(islice(stream, accumulate)))
                self.state.seconds = time.monotonic() - started
                if self._due(epochs):
                    self._validate()
                    self.state.seconds = time.monotonic() - started
                elif self.state.step % self.config.save_checkpoint_steps == 0:
                    self._save()
                outcome = self._finished(received)
        if outcome.signal is None and self.state.validated < self.state.step:
            self._validate()
        self._save()
        return outcome

    # --- one update ------------------------------------------------------------------------

    def _update(self, batches: Sequence[Batch]) -> None:
        """One step of the optimiser on the gradient of all `batches` together."""
        config, state = self.config, self.state
        self._set_dropout()
        for group in self.optimizer.param_groups:
            group["lr"] = self._learning_rate(state.step + 1)
        by_tokens = config.normalization == "tokens"
        size = sum(_target_tokens(batch) if by_tokens else len(batch) for batch in batches)
        self.optimizer.zero_grad(set_to_none=True)
        pad = self.run.vocabularies.target.pad
        for batch in batches:
            hidden, target = self.model.hidden_states(batch.to(device_of(self.model)))
            result = self.model.generator.loss(hidden, target, pad, config.label_smoothing)
            (result.loss / size).backward()
            self._seen.add(result)
        if not math.isfinite(self._seen.last_loss):
            raise TrainingError(
                f"the loss is {self._seen.last_loss} at step {state.step + 1}; "
                f"lower the learning rate, or continue from a checkpoint in {self.run.path}"
            )
        if config.optimizer.max_grad_norm > 0:
            torch.nn.utils.clip_grad_norm_(self.parameters, config.optimizer.max_grad_norm)
        self.optimizer.step()
        state.step += 1
        self.records.advance()
        if state.step % config.report_every == 0:
            rate = self._learning_rate(state.step)
            self.records.training(
                state.step,
                self._seen.take() | {"learning_rate": rate, "epoch": self.batches.position.epoch},
            )

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
        self.model.eval()
        with torch.no_grad():
            values = self.evaluate(self.model)
        self.model.train()
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
        self.records.validation(state.step, values | {"seconds": round(state.seconds, 1)})
        if better:
            self._save()  # before it is named the best, so that the name never points at nothing
            remember_best(self.run.path, state.step, config.selection, value)
        elif state.step % config.save_checkpoint_steps == 0:
            self._save()

    def _finished(self, received: Sequence[int] = ()) -> Outcome | None:
        config, state = self.config, self.state
        if received:
            return Outcome(state.step, signal.Signals(received[0]).name, received[0])
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
        if self._saved != self.state.step:
            self.run.save(self.state.step, self.model, self.state_dict())
            self._saved = self.state.step

    def state_dict(self) -> dict[str, Any]:
        """Everything that continuing needs, as tensors, numbers and dicts."""
        cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
        return {
            "run": asdict(self.state),
            "position": asdict(self.batches.position),
            "optimizer": self.optimizer.state_dict(),
            "random": {"cpu": torch.random.get_rng_state(), "cuda": cuda},
        }

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Continue from what `state_dict` gave, at the next batch and the same random state."""
        self.state = RunState(**saved["run"])
        self.batches.position = Position(**saved["position"])
        self.optimizer.load_state_dict(saved["optimizer"])
        torch.random.set_rng_state(saved["random"]["cpu"])
        if torch.cuda.is_available() and saved["random"]["cuda"]:
            torch.cuda.set_rng_state_all(saved["random"]["cuda"])


def _target_tokens(batch: Batch) -> int:
    assert batch.target_lengths is not None, "training batches have targets"
    return int(batch.target_lengths.sum()) - len(batch)  # the start symbol is not predicted


class _Averages:
    """Running averages of what the output layer reports, for the log."""

    def __init__(self) -> None:
        self.last_loss = 0.0
        self._reset()

    def _reset(self) -> None:
        self._loss = self._tokens = self._correct = self._support = 0.0
        self._since = time.monotonic()

    def add(self, result: Any) -> None:
        self.last_loss = float(result.loss.detach())
        self._loss += self.last_loss
        self._tokens += float(result.tokens)
        self._correct += float(result.correct)
        self._support += float(result.support)

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


@contextmanager
def _signals() -> Iterator[list[int]]:
    """Collect SIGINT and SIGTERM instead of dying of them; a second one kills as usual."""
    received: list[int] = []

    def handle(number: int, frame: FrameType | None) -> None:
        received.append(number)
        signal.signal(number, before[signal.Signals(number)])

    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.getsignal(number) for number in numbers}
    for number in numbers:
        signal.signal(number, handle)
    try:
        yield received
    finally:
        for number in numbers:
            signal.signal(number, before[number])
