"""Cases of a benchmark, and measurements of their contenders."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Measurement:
    """Time or memory of a contender.

    Attributes:
        values: numbers by name, for the JSON record.
        text: cell of the printed table.
    """

    values: dict[str, float]
    text: str


@dataclass(frozen=True)
class Case:
    """Functions that do the same work, under one set of conditions.

    Attributes:
        conditions: sizes, alpha, logits and so on, by name, for the JSON record.
        contenders: the functions by name; the first is the reference of all ratios.
    """

    conditions: dict[str, object]
    contenders: Mapping[str, Callable[[], object]]
