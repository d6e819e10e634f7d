#!/usr/bin/env python
"""How long runs trained until validation first reached a value: what metrics.jsonl holds.

    python tools/time_to.py run/pilot/model run/pilot/softmax --measure exact_match --values 70 78

Prints a Markdown table of seconds and updates, a line for each run. Seconds are wall time from the
start of training to the weights that were validated; earlier validations are in it, that one is
not. Values are those of validations, nothing is interpolated: the truth is up to one interval of
validation earlier. A measure is better when it is larger, or smaller if its name ends in `loss`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from onmt_entmax.cli.ending import argument_parser, run_script
from onmt_entmax.errors import UserError
from onmt_entmax.figures.curves import read_metrics


def first_reached(
    rows: Iterable[Mapping[str, Any]], measure: str, value: float
) -> Mapping[str, Any] | None:
    """The first validation, in order of steps, at least as good as `value`, or None."""
    sign = -1 if measure.endswith("loss") else 1
    good = (row for row in rows if sign * row[measure] >= sign * value)
    return min(good, key=lambda row: row["step"], default=None)


def table(runs: Sequence[Path], measure: str, values: Sequence[float]) -> str:
    """A Markdown table: for each run and value the seconds and updates, and the best value.

    Raises:
        UserError: a run has no such measure.
    """
    heads = ["run", *(f"{measure} {value:g}" for value in values), "best"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for run in runs:
        valid = [row for row in read_metrics(run) if row["kind"] == "valid"]
        rows = [row for row in valid if _is_number(row.get(measure)) and "seconds" in row]
        if not rows:
            raise UserError(f"{run}: no {measure} was measured on a development set")
        cells = [first_reached(rows, measure, value) for value in values]
        better = min if measure.endswith("loss") else max
        best = better(rows, key=lambda row: row[measure])
        shown = [f"{row['seconds']:.0f} s, {row['step']:,}" if row else "never" for row in cells]
        lines.append(f"| {' | '.join([str(run), *shown, f'{best[measure]:.4g}'])} |")
    return "\n".join(lines)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value)


def main(arguments: Sequence[str]) -> int:
    """Reads the command line and prints; an error of the user's is one line and status 2."""
    parser = argument_parser(__doc__)
    parser.add_argument("runs", nargs="+", type=Path, help="run folders")
    parser.add_argument("--measure", default="exact_match", help="measure of a validation")
    parser.add_argument("--values", nargs="+", type=float, required=True, help="to be reached")
    options = parser.parse_args(arguments)
    print(table(options.runs, options.measure, options.values))
    return 0


if __name__ == "__main__":
    run_script(main)
