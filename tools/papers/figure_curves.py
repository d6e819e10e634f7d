"""The figure of what training runs measured over their steps, with a panel for each measurement."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from onmt_entmax.errors import UserError
from tools.papers.metrics import read_metrics, series
from tools.papers.picture_axes import plain_numbers
from tools.papers.plotting import Axes, Figure, pyplot, ticker


class Measurement(NamedTuple):
    """What a panel shows: a measurement by its kind and name in metrics.jsonl."""

    kind: str
    name: str


TITLES = {
    Measurement("train", "loss"): "training loss a token",
    Measurement("valid", "loss"): "validation loss a token",
    Measurement("valid", "exact_match"): "validation exact match (%)",
    Measurement("valid", "bleu"): "validation BLEU",
    Measurement("valid", "macro_accuracy"): "validation macro accuracy (%)",
    Measurement("valid", "token_accuracy"): "validation token accuracy (%)",
    Measurement("valid", "support"): "nonzero outputs a token",
    Measurement("train", "learning_rate"): "learning rate",
}
MOST_ACROSS = 3  # panels side by side
PANEL_SIZE = (3.4, 2.4)  # inches
# Measurements with a logarithmic scale, if the largest value is this many times the smallest one.
MAY_BE_LOGARITHMIC = ("loss", "support")
LOGARITHMIC_FROM = 10

Rows = Sequence[Mapping[str, Any]]  # of metrics.jsonl


def draw_curves(runs: Sequence[Path], names: Sequence[str]) -> Figure:
    """Draw a panel for each measurement of the runs.

    Args:
        runs: folders.
        names: names of the runs.

    Raises:
        UserError: measurements cannot be read, or none of them is drawn.
    """
    measured = {name: read_metrics(run) for name, run in zip(names, runs, strict=True)}
    measurements = [
        measurement
        for measurement in TITLES
        if any(series(rows, *measurement).values for rows in measured.values())
    ]
    if not measurements:
        raise UserError(f"{', '.join(map(str, runs))}: nothing that can be drawn was measured")
    across = min(MOST_ACROSS, len(measurements))
    down = math.ceil(len(measurements) / across)
    width, height = PANEL_SIZE
    figure, axes = pyplot.subplots(
        down, across, figsize=(width * across, height * down), squeeze=False
    )
    for measurement, axis in zip(measurements, axes.flat, strict=False):
        _draw_panel(axis, measurement, measured)
    for axis in axes.flat[len(measurements) :]:  # the last row may have empty panels
        axis.set_visible(False)
    handles = axes.flat[0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=across)
    return figure


def _draw_panel(axis: Axes, measurement: Measurement, measured: Mapping[str, Rows]) -> None:
    """Draw a measurement of runs over their steps; validations have markers.

    Args:
        axis: axis of the panel.
        measurement: a measurement that at least one run has.
        measured: everything that was measured, by the name of the run.
    """
    all_values: list[float] = []
    for name, rows in measured.items():
        steps, values = series(rows, *measurement)
        axis.plot(steps, values, label=name, marker="o" if measurement.kind == "valid" else "")
        all_values += values
    axis.set_title(TITLES[measurement])
    axis.set_xlabel("step")
    axis.xaxis.set_major_formatter(ticker.EngFormatter(sep=""))  # 100k is shorter than 100000
    axis.grid()
    least, most = min(all_values), max(all_values)
    if measurement.name in MAY_BE_LOGARITHMIC and most > LOGARITHMIC_FROM * least > 0:
        axis.set_yscale("log")
        plain_numbers(axis)
