"""Curves of training runs: what metrics.jsonl in a run folder holds, and its picture."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from onmt_entmax.errors import UserError
from onmt_entmax.figures.style import picture_format, write_picture
from onmt_entmax.files import read_lines

# Panels in this order, where at least one run has measured them.
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
    """The measurements of a run, in order of time.

    Each has `kind`, a string, and `step`, an integer. Half a line at the end, which a run that was
    killed leaves, is passed over.

    Raises:
        UserError: there are none, or names the line that is no measurement.
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
    if not rows:
        raise UserError(f"{path}: nothing has been measured yet")
    return rows


def series(rows: Sequence[dict[str, Any]], kind: str, name: str) -> tuple[list[int], list[float]]:
    """Steps and values of one measurement."""
    found = [(row["step"], row[name]) for row in rows if row["kind"] == kind and name in row]
    return [step for step, _ in found], [value for _, value in found]


def plot(runs: Sequence[Path], names: Sequence[str], output: Path) -> None:
    """Draw the panels that the runs have measured.

    Args:
        runs: run folders.
        names: of the runs, for the legend.
        output: the picture, which its name gives the format.

    Raises:
        UserError: a run has no measurements or none of them has one that is drawn, matplotlib is
            missing, or the picture cannot be written.
    """
    picture_format(output)  # before the work, not after
    try:
        import matplotlib
    except ImportError:
        raise UserError('matplotlib is missing: pip install -e ".[plot]"') from None
    matplotlib.use("Agg")
    from matplotlib import pyplot, ticker

    measured = [read_metrics(run) for run in runs]
    shown = [panel for panel in PANELS if any(series(rows, *panel)[0] for rows in measured)]
    if not shown:
        raise UserError(f"{', '.join(map(str, runs))}: nothing that can be drawn was measured")
    columns = min(3, len(shown))
    lines = -(-len(shown) // columns)
    figure, axes = pyplot.subplots(
        lines, columns, figsize=(4.2 * columns, 3.0 * lines), squeeze=False, layout="constrained"
    )
    for panel, axis in zip(shown, axes.flat, strict=False):
        for name, rows in zip(names, measured, strict=True):
            steps, values = series(rows, *panel)
            axis.plot(steps, values, label=name, marker="o" if panel[0] == "valid" else "", ms=3)
        axis.set_title(PANELS[panel], fontsize=10)
        axis.set_xlabel("step", fontsize=9)
        axis.xaxis.set_major_formatter(ticker.EngFormatter(sep=""))  # 100k takes less room
        axis.grid(alpha=0.3)
        if panel[1] in ("loss", "support"):
            axis.set_yscale("log")
    for axis in axes.flat[len(shown) :]:
        axis.set_visible(False)
    lines_and_names = axes.flat[0].get_legend_handles_labels()
    figure.legend(*lines_and_names, loc="outside lower center", ncols=columns, fontsize=9)
    write_picture(figure, output)
