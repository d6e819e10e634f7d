"""What a benchmark compares, and what is measured of it; `runner.py` does so."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Measured:
    """What was measured of a contender.

    Attributes:
        values: by name, for the record.
        text: for the printed table.
    """

    values: dict[str, float]
    text: str


@dataclass(frozen=True)
class Case:
    """Functions that do the same work, under one set of conditions.

    Attributes:
        conditions: what is fixed, for the record: sizes, alpha, logits.
        contenders: the functions by name; the first is the reference of all ratios.
    """

    conditions: dict[str, object]
    contenders: Mapping[str, Callable[[], object]]
