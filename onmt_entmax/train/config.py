"""The outcome of a training run, and values that change with the step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from onmt_entmax.config import RunConfig, TrainingConfig
from onmt_entmax.errors import UserError

__all__ = ["Outcome", "RunConfig", "TrainingConfig", "TrainingError", "value_at"]


class TrainingError(UserError):
    """Training cannot continue; the message names the step and the reason."""


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
