#!/usr/bin/env python
"""Curves of one or several runs as a picture: what metrics.jsonl in a run folder holds.

    python tools/plot_run.py run/pilot/model run/pilot/softmax --output run/pilot/curves.png

Needs matplotlib: pip install -e ".[plot]"
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from onmt_entmax.commands import command
from onmt_entmax.errors import UserError

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

    Raises:
        UserError: there are none, or a line is damaged.
    """
    path = run / "metrics.jsonl"
    rows = []
    try:
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                try:
                    rows.append(json.loads(line))
                except json.JSONDecodeError:
                    raise UserError(f"{path}: line {number} is not JSON") from None
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    if not rows:
        raise UserError(f"{path}: nothing has been measured yet")
    return rows


def series(rows: Sequence[dict[str, Any]], kind: str, name: str) -> tuple[list[int], list[float]]:
    """Steps and values of one measurement."""
    found = [(row["step"], row[name]) for row in rows if row["kind"] == kind and name in row]
    return [step for step, _ in found], [value for _, value in found]


def plot(runs: Sequence[Path], names: Sequence[str], output: Path) -> None:
    """Draw the panels that the runs have measured."""
    try:
        import matplotlib
    except ImportError:
        raise UserError('matplotlib is missing: pip install -e ".[plot]"') from None
    matplotlib.use("Agg")
    from matplotlib import pyplot, ticker

    measured = [read_metrics(run) for run in runs]
    shown = [panel for panel in PANELS if any(series(rows, *panel)[0] for rows in measured)]
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
    try:
        figure.savefig(output, dpi=120)
    except (OSError, ValueError) as error:
        raise UserError(f"{output}: cannot be written ({error})") from None


@command
def main(arguments: Sequence[str] | None = None) -> int:
    """Reads the command line and draws; an error of the user's is one line and status 2."""
    parser = argparse.ArgumentParser(description="Draw the curves of runs.")
    parser.add_argument("runs", nargs="+", type=Path, help="run folders")
    parser.add_argument("--names", nargs="+", help="names for the legend; else the folders'")
    parser.add_argument("--output", type=Path, required=True, help="picture, .png, .pdf or .svg")
    options = parser.parse_args(arguments)
    names = options.names or [str(run) for run in options.runs]
    if len(names) != len(options.runs):
        raise UserError(f"--names: {len(names)} names for {len(options.runs)} runs")
    plot(options.runs, names, options.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
