"""Figures of training runs: curves over updates, and a measure over time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from onmt_entmax.errors import UserError
from tools.papers.metrics import MEASURES, choose_measure, read_metrics, series
from tools.papers.pictures import COLUMN, Figure, plain_numbers, pyplot, ticker

PANELS = {  # of `curves`: kind and name of a measurement
    ("train", "loss"): "training loss a token",
    ("valid", "loss"): "validation loss a token",
    ("valid", "exact_match"): "validation exact match (%)",
    ("valid", "bleu"): "validation BLEU",
    ("valid", "macro_accuracy"): "validation macro accuracy (%)",
    ("valid", "token_accuracy"): "validation token accuracy (%)",
    ("valid", "support"): "nonzero outputs a token",
    ("train", "learning_rate"): "learning rate",
}
MARKERS = "osD^vP*"


def draw_curves(runs: Sequence[Path], names: Sequence[str]) -> Figure:
    """Draw a panel for each measurement of the runs.

    Raises:
        UserError: measurements cannot be read, or none of them is drawn.
    """
    measured = [read_metrics(run) for run in runs]
    shown = [panel for panel in PANELS if any(series(rows, *panel)[0] for rows in measured)]
    if not shown:
        raise UserError(f"{', '.join(map(str, runs))}: nothing that can be drawn was measured")
    columns = min(3, len(shown))
    lines = math.ceil(len(shown) / columns)
    size = (3.4 * columns, 2.4 * lines)
    figure, axes = pyplot.subplots(lines, columns, figsize=size, squeeze=False)
    for panel, axis in zip(shown, axes.flat, strict=False):  # the last axes may stay empty
        points = [series(rows, *panel) for rows in measured]
        for name, (steps, values) in zip(names, points, strict=True):
            axis.plot(steps, values, label=name, marker="o" if panel[0] == "valid" else "")
        axis.set_title(PANELS[panel])
        axis.set_xlabel("step")
        axis.xaxis.set_major_formatter(ticker.EngFormatter(sep=""))  # 100k is shorter than 100000
        axis.grid()
        all_values = [value for _, values in points for value in values]
        least, most = min(all_values), max(all_values)
        if panel[1] in ("loss", "support") and most > 10 * least > 0:
            axis.set_yscale("log")
            plain_numbers(axis)
    for axis in axes.flat[len(shown) :]:
        axis.set_visible(False)
    handles = axes.flat[0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=columns)
    return figure


def draw_time(
    runs: Sequence[Path], names: Sequence[str], measure: str | None, label: str | None
) -> Figure:
    """Draw a development measure over training time; the first run of each name has markers.

    Raises:
        UserError: a run has no measurements, or not this one.
    """
    measured = [[row for row in read_metrics(run) if row["kind"] == "valid"] for run in runs]
    measure = choose_measure([row for rows in measured for row in rows], measure, runs[0])
    curves = [series(rows, "valid", measure, "seconds") for rows in measured]
    for run, (_, values) in zip(runs, curves, strict=True):
        if not values:
            raise UserError(f"{run}: no {measure} was measured on a development set yet")
    unit, size = _unit_of(max(seconds[-1] for seconds, _ in curves))
    figure, axis = pyplot.subplots(figsize=(COLUMN, 2.2))
    different = list(dict.fromkeys(names))
    for index, (name, (seconds, values)) in enumerate(zip(names, curves, strict=True)):
        number = different.index(name)
        is_repeated = name in names[:index]
        axis.plot(
            [second / size for second in seconds],
            values,
            color=f"C{number}",
            marker="" if is_repeated else MARKERS[number % len(MARKERS)],
            label=None if is_repeated else name,
        )
    axis.set_xlabel(f"{unit} of training")
    axis.set_ylabel(f"development {label or MEASURES.get(measure, measure)}")
    axis.set_xlim(left=0)
    axis.xaxis.set_major_locator(ticker.MaxNLocator(6))
    axis.grid(axis="y")
    axis.legend()  # where it hides the least
    return figure


def _unit_of(seconds: float) -> tuple[str, int]:
    """Return the name and the seconds of a unit of time in which an axis has short numbers."""
    for unit, size in (("hours", 3600), ("minutes", 60)):
        if seconds > 2 * size:
            return unit, size
    return "seconds", 1
