"""The figure of a measure over alphas of attention and output (Peters et al. 2019, Figure 4)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from onmt_entmax.errors import UserError
from tools.papers.metrics import MEASURES, choose_measure
from tools.papers.pictures import COLUMN
from tools.papers.plotting import Axes, Figure, pyplot, ticker
from tools.papers.sweep_results import read_results


class _Point(NamedTuple):
    """An alpha, and the value of the measure in a training with it."""

    alpha: float
    value: float


class _Panels(NamedTuple):
    """The points of both panels, one for each training.

    Attributes:
        measure: name of the measure.
        attention: the alpha of attention varies, and that of the output is fixed.
        output: the alpha of the output varies, and that of attention is fixed.
    """

    measure: str
    attention: list[_Point]
    output: list[_Point]


def draw_sweep(
    paths: Sequence[Path], measure: str | None, label: str | None, fixed: float
) -> Figure:
    """Draw a measure over attention alpha, and over output alpha, in two panels.

    Args:
        paths: files and folders with trainings; `read_results` says which. A line joins the means
            over seeds, and each training is a dot.
        measure: name of the measure; None: the first that all trainings have.
        label: label of the vertical axis; None: the measure's own.
        fixed: value of the alpha that does not vary.

    Raises:
        UserError: there is no training with this value, or a result lacks a number.
    """
    panels = _read_panels(paths, measure, fixed)
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(COLUMN, 1.65), sharey=True)
    _draw_panel(left, panels.attention, "C0")
    _draw_panel(right, panels.output, "C1")
    left.set_xlabel("attention α")
    right.set_xlabel("output α")
    left.set_ylabel(label or MEASURES.get(panels.measure, panels.measure))
    return figure


def _read_panels(paths: Sequence[Path], measure: str | None, fixed: float) -> _Panels:
    """Return the points of both panels.

    Raises:
        UserError: there is no training with the fixed alpha, or a result lacks a number.
    """
    results = [result for path in paths for result in read_results(path)]
    where = ", ".join(map(str, paths))
    if not results:
        raise UserError(f"{where}: no figures.json, and no metrics.jsonl of a run")
    name = choose_measure([result.values for result in results], measure, where)
    panels = _Panels(name, attention=[], output=[])
    for result in results:
        attention, output = result.number("attention_alpha"), result.number("output_alpha")
        value = result.number(name)
        if output == fixed:
            panels.attention.append(_Point(attention, value))
        if attention == fixed:
            panels.output.append(_Point(output, value))
    if not panels.attention and not panels.output:
        raise UserError(f"{where}: no training with attention or output alpha {fixed:g}")
    return panels


def _draw_panel(axis: Axes, points: Sequence[_Point], colour: str) -> None:
    """Draw the mean for each alpha; if an alpha has several points, also all points, as dots."""
    by_alpha: dict[float, list[float]] = {alpha: [] for alpha, _ in sorted(points)}
    for alpha, value in points:
        by_alpha[alpha].append(value)
    alphas = list(by_alpha)
    axis.plot(alphas, [np.mean(values) for values in by_alpha.values()], color=colour, marker="o")
    if len(points) > len(alphas):
        axis.plot(*zip(*points, strict=True), color=colour, ls="", marker=".", alpha=0.35)
    axis.set_xticks([1, 1.5, 2] if alphas and alphas[-1] <= 2.5 else alphas)
    axis.yaxis.set_major_locator(ticker.MaxNLocator(4))
    axis.grid(axis="y")
    axis.margins(y=0.15)
