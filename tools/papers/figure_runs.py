"""Figures of training runs: curves over updates, and a measure over time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from onmt_entmax.errors import UserError
from tools.papers.metrics import MEASURES, choose_measure, read_metrics, series
from tools.papers.picture_axes import plain_numbers
from tools.papers.pictures import COLUMN
from tools.papers.plotting import Axes, Figure, pyplot, ticker


class Panel(NamedTuple):
    """What a panel of `curves` shows: kind and name of a measurement."""

    kind: str
    name: str


TITLES = {
    Panel("train", "loss"): "training loss a token",
    Panel("valid", "loss"): "validation loss a token",
    Panel("valid", "exact_match"): "validation exact match (%)",
    Panel("valid", "bleu"): "validation BLEU",
    Panel("valid", "macro_accuracy"): "validation macro accuracy (%)",
    Panel("valid", "token_accuracy"): "validation token accuracy (%)",
    Panel("valid", "support"): "nonzero outputs a token",
    Panel("train", "learning_rate"): "learning rate",
}
ACROSS = 3  # panels side by side, at most
PANEL_SIZE = (3.4, 2.4)  # inches
LOGARITHMIC = ("loss", "support")  # if their values are more than RANGE apart
RANGE = 10
MARKERS = "osD^vP*"

Rows = Sequence[Mapping[str, Any]]  # measurements of a run

# --- curves ----------------------------------------------------------------------------------


def draw_curves(runs: Sequence[Path], names: Sequence[str]) -> Figure:
    """Draw a panel for each measurement of the runs.

    Args:
        runs: folders.
        names: of the runs.

    Raises:
        UserError: measurements cannot be read, or none of them is drawn.
    """
    measured = {name: read_metrics(run) for name, run in zip(names, runs, strict=True)}
    panels = [
        panel for panel in TITLES if any(series(rows, *panel)[0] for rows in measured.values())
    ]
    if not panels:
        raise UserError(f"{', '.join(map(str, runs))}: nothing that can be drawn was measured")
    columns = min(ACROSS, len(panels))
    lines = math.ceil(len(panels) / columns)
    width, height = PANEL_SIZE
    figure, axes = pyplot.subplots(
        lines, columns, figsize=(width * columns, height * lines), squeeze=False
    )
    for panel, axis in zip(panels, axes.flat, strict=False):  # the last axes may stay empty
        _draw_panel(axis, panel, measured)
    for axis in axes.flat[len(panels) :]:
        axis.set_visible(False)
    handles = axes.flat[0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=columns)
    return figure


def _draw_panel(axis: Axes, panel: Panel, measured: Mapping[str, Rows]) -> None:
    """Draw a measurement of runs over their steps."""
    all_values: list[float] = []
    for name, rows in measured.items():
        steps, values = series(rows, *panel)
        axis.plot(steps, values, label=name, marker="o" if panel.kind == "valid" else "")
        all_values += values
    axis.set_title(TITLES[panel])
    axis.set_xlabel("step")
    axis.xaxis.set_major_formatter(ticker.EngFormatter(sep=""))  # 100k is shorter than 100000
    axis.grid()
    least, most = min(all_values), max(all_values)
    if panel.name in LOGARITHMIC and most > RANGE * least > 0:
        axis.set_yscale("log")
        plain_numbers(axis)


# --- a measure over time ---------------------------------------------------------------------


def draw_time(
    runs: Sequence[Path], names: Sequence[str], measure: str | None, label: str | None
) -> Figure:
    """Draw a development measure over training time; the first run of each name has markers.

    Args:
        runs: folders.
        names: of the runs; those of the same name share a colour.
        measure: its name; None takes the first found.
        label: of the vertical axis, after "development"; None: that of the measure.

    Raises:
        UserError: a run has no measurements, or not this one.
    """
    measured = [[row for row in read_metrics(run) if row["kind"] == "valid"] for run in runs]
    measure = choose_measure([row for rows in measured for row in rows], measure, runs[0])
    curves = [series(rows, "valid", measure, over="seconds") for rows in measured]
    for run, (_, values) in zip(runs, curves, strict=True):
        if not values:
            raise UserError(f"{run}: no {measure} was measured on a development set yet")
    unit, seconds_of_unit = _unit_of(max(seconds[-1] for seconds, _ in curves))
    figure, axis = pyplot.subplots(figsize=(COLUMN, 2.2))
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    for position, (name, (seconds, values)) in enumerate(zip(names, curves, strict=True)):
        number = numbers[name]
        is_first = position == names.index(name)
        axis.plot(
            [second / seconds_of_unit for second in seconds],
            values,
            color=f"C{number}",
            marker=MARKERS[number % len(MARKERS)] if is_first else "",
            label=name if is_first else None,
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
