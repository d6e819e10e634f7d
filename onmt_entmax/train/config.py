"""What a training run is told, and what it says when it ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from onmt_entmax.errors import UserError
from onmt_entmax.train.optimiser import OptimizerConfig


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
    selection: str = "loss"  # the measure of a validation that makes a model the best
    accum_count: tuple[int, ...] = (1,)
    accum_steps: tuple[int, ...] = (0,)
    normalization: str = "sents"
    label_smoothing: float = 0.0
    dropout: tuple[float, ...] = (0.3,)
    attention_dropout: tuple[float, ...] = (0.1,)
    dropout_steps: tuple[int, ...] = (0,)
    attention_warmup_steps: int = 0  # updates in which the attention's alpha rises from 1
    average_decay: float = 0.0  # of the average of weights; 0: no average
    average_every: int = 1  # updates from one share in it to the next
    on_nonfinite: str = "stop"  # or skip: what to do about a loss or gradient of inf or nan
    matmul_dtype: str = "float32"  # or bfloat16: of the products in recurrences, while training
    report_every: int = 50


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    step: int
    reason: str
    signal: int | None = None  # the signal that ended it


def value_at(values: Sequence[Any], starts: Sequence[int], step: int) -> Any:
    """The value in force after `step` updates, where each value has a step it starts at; as in
    OpenNMT-py the first one holds before, too."""
    started = [value for value, start in zip(values, starts, strict=True) if step >= start]
    return [values[0], *started][-1]
