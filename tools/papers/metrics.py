"""Measurements of training runs, as their logs have them, and the names of measures."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from onmt_entmax.errors import UserError
from onmt_entmax.files import read_lines

MEASURES = {  # the default is the first found
    "bleu": "BLEU",
    "accuracy": "accuracy (%)",
    "exact_match": "exact match (%)",
    "token_accuracy": "token accuracy (%)",
    "loss": "loss a token",
}


def read_metrics(run: Path) -> list[dict[str, Any]]:
    """Return the measurements of a run in order of time, each with its `kind` and `step`.

    An incomplete last line, left by a killed run, is ignored.

    Raises:
        UserError: the file cannot be read, or a line is not a measurement.
    """
    path = run / "metrics.jsonl"
    rows = []
    lines = list(read_lines(path))
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line)
            rows.append({**row, "kind": str(row["kind"]), "step": int(row["step"])})
        except (ValueError, KeyError, TypeError):
            if number < len(lines):
                raise UserError(f"{path}:{number}: not a measurement") from None
    return rows


class Series(NamedTuple):
    """One measurement over a training.

    Attributes:
        times: steps or seconds.
        values: measured at these times.
    """

    times: list[float]
    values: list[float]


def series(rows: Sequence[Mapping[str, Any]], kind: str, name: str, over: str = "step") -> Series:
    """Return a measurement over a training; it is empty if nothing was measured.

    Args:
        rows: measurements, as `read_metrics` returns them.
        kind: such as train or valid.
        name: name of the measurement.
        over: the key of the times, "step" or "seconds".
    """
    chosen = [row for row in rows if row["kind"] == kind and name in row and over in row]
    return Series([row[over] for row in chosen], [row[name] for row in chosen])


def choose_measure(rows: Sequence[Mapping[str, Any]], measure: str | None, where: object) -> str:
    """Return the measure, or by default the first in `MEASURES` that every row has.

    Args:
        rows: measurements, or figures of runs.
        measure: its name; None: the default.
        where: the rows come from, for the error.

    Raises:
        UserError: no row has it.
    """
    if measure is None:
        measure = next((name for name in MEASURES if all(name in row for row in rows)), None)
    if measure is None or not any(measure in row for row in rows):
        raise UserError(f"{where}: no {measure or ', '.join(MEASURES)} in it; see --measure")
    return measure
