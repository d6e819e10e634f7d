"""Training curves: reading metrics.jsonl of run folders, and drawing them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onmt_entmax.errors import UserError
from onmt_entmax.figures.style import plain_numbers
from onmt_entmax.files import read_lines

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Measurements that are drawn, by kind and name, and the titles of their panels.
PANELS = {
    ("train", "loss"): "training loss a token",
    ("valid", "loss"): "validation loss a token",
    ("valid", "exact_match"): "validation exact match (%)",
    ("valid", "bleu"): "validation BLEU",
    ("valid", "macro_accuracy"): "validation macro accuracy (%)",
    ("valid", "token_accuracy"): "validation token accuracy (%)",
    ("valid", "support"): "nonzero outputs a token",
    ("train", "learning_rate"): "learning rate",
}


def read_metrics(run: Path) -> list[dict[str, Any]]:
    """Return the measurements of a run in order of time, each with its `kind` and `step`.

    An incomplete last line, left by a killed run, is ignored.

    Raises:
        UserError: the file cannot be read, or a line is no measurement.
    """
    path = run / "metrics.jsonl"
    rows: list[dict[str, Any]] = []
    lines = list(read_lines(path))
    if lines and lines[-1].startswith("{") and not lines[-1].endswith("}"):
        lines.pop()
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line)
        except ValueError:
            raise UserError(f"{path}:{number}: not JSON") from None
        known = isinstance(row, dict) and isinstance(row.get("kind"), str)
        if not known or not isinstance(row.get("step"), int):
            raise UserError(f"{path}:{number}: not a measurement, with its `kind` and `step`")
        rows.append(row)
    return rows


def series(rows: Sequence[dict[str, Any]], kind: str, name: str) -> tuple[list[int], list[float]]:
    """Return steps and values of one measurement."""
    found = [(row["step"], row[name]) for row in rows if row["kind"] == kind and name in row]
    return [step for step, _ in found], [value for _, value in found]


def draw_curves(runs: Sequence[Path], names: Sequence[str]) -> Figure:
    """Draw a panel for each measurement of the runs.

    Args:
        runs: run folders.
        names: names of the runs, for the legend.

    Raises:
        UserError: measurements cannot be read, or none of them is drawn.
    """
    from matplotlib import pyplot, ticker

    measured = [read_metrics(run) for run in runs]
    shown = [panel for panel in PANELS if any(series(rows, *panel)[0] for rows in measured)]
    if not shown:
        raise UserError(f"{', '.join(map(str, runs))}: nothing that can be drawn was measured")
    columns = min(3, len(shown))
    lines = -(-len(shown) // columns)
    size = (3.4 * columns, 2.4 * lines)
    figure, axes = pyplot.subplots(lines, columns, figsize=size, squeeze=False)
    for panel, axis in zip(shown, axes.flat, strict=False):
        found = [series(rows, *panel) for rows in measured]
        for name, (steps, values) in zip(names, found, strict=True):
            axis.plot(steps, values, label=name, marker="o" if panel[0] == "valid" else "")
        axis.set_title(PANELS[panel])
        axis.set_xlabel("step")
        axis.xaxis.set_major_formatter(ticker.EngFormatter(sep=""))  # 100k is shorter than 100000
        axis.grid()
        least, most = (choose(v for _, values in found for v in values) for choose in (min, max))
        if panel[1] in ("loss", "support") and most > 10 * least > 0:
            axis.set_yscale("log")
            plain_numbers(axis)
    for axis in axes.flat[len(shown) :]:
        axis.set_visible(False)
    figure.legend(
        *axes.flat[0].get_legend_handles_labels(), loc="outside lower center", ncols=columns
    )
    return figure
