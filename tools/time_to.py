"""Print how long runs trained until a development measure first reached a value.

    python tools/time_to.py run/pilot/model run/pilot/softmax --measure exact_match --values 70 78

Prints a Markdown table of seconds and updates, a row for each run, from its metrics.jsonl. Seconds
are wall time from the start of training to the validated weights, with earlier validations.
Nothing is interpolated: the value may have been reached up to one validation interval earlier. A
larger measure is better, unless its name ends in `loss`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from onmt_entmax.cli.ending import argument_parser, run_script
from onmt_entmax.errors import UserError
from onmt_entmax.figures.curves import read_metrics
from onmt_entmax.report.tables import markdown_table


def first_reached(
    rows: Iterable[Mapping[str, Any]], measure: str, value: float
) -> Mapping[str, Any] | None:
    """Return the first validation that is at least as good as `value`, or None."""
    sign = -1 if measure.endswith("loss") else 1
    good = (row for row in rows if sign * row[measure] >= sign * value)
    return min(good, key=lambda row: row["step"], default=None)


def table(runs: Sequence[Path], measure: str, values: Sequence[float]) -> str:
    """Return a Markdown table: seconds and updates for each run and value, and the best value.

    Raises:
        UserError: a run has no such measure.
    """
    heads = ["run", *(f"{measure} {value:g}" for value in values), "best"]
    lines = []
    for run in runs:
        valid = [row for row in read_metrics(run) if row["kind"] == "valid"]
        rows = [row for row in valid if _is_number(row.get(measure)) and "seconds" in row]
        if not rows:
            raise UserError(f"{run}: no {measure} was measured on a development set")
        cells = [first_reached(rows, measure, value) for value in values]
        better = min if measure.endswith("loss") else max
        best = better(rows, key=lambda row: row[measure])
        shown = [f"{row['seconds']:.0f} s, {row['step']:,}" if row else "never" for row in cells]
        lines.append([str(run), *shown, f"{best[measure]:.4g}"])
    return markdown_table(heads, lines)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value)


def main(arguments: Sequence[str]) -> int:
    """Print the table; return the exit status."""
    parser = argument_parser(__doc__)
    parser.add_argument("runs", nargs="+", type=Path, help="run folders")
    parser.add_argument("--measure", default="exact_match", help="development measure")
    parser.add_argument("--values", nargs="+", type=float, required=True, help="values to reach")
    options = parser.parse_args(arguments)
    print(table(options.runs, options.measure, options.values))
    return 0


if __name__ == "__main__":
    run_script(main)
