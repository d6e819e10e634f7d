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


class _Panels(NamedTuple):
    """Pairs of an alpha and the measure, a pair for each training.

    Attributes:
        attention: the alpha of attention varies, that of the output is fixed.
        output: the alpha of the output varies, that of attention is fixed.
    """

    attention: list[tuple[float, float]]
    output: list[tuple[float, float]]


def draw_sweep(
    paths: Sequence[Path], measure: str | None, label: str | None, fixed: float
) -> Figure:
    """Draw a measure over attention alpha, and over output alpha, in two panels.

    Args:
        paths: paths of the trainings. The line is the mean over seeds, which are dots.
        measure: its name; None takes the first found.
        label: label of the vertical axis.
        fixed: value of the other alpha.

    Raises:
        UserError: there is no training with this value, or a result lacks a number.
    """
    name, panels = _read_panels(paths, measure, fixed)
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(COLUMN, 1.65), sharey=True)
    _draw_panel(left, panels.attention, "C0")
    _draw_panel(right, panels.output, "C1")
    left.set_xlabel("attention α")
    right.set_xlabel("output α")
    left.set_ylabel(label or MEASURES.get(name, name))
    return figure


def _read_panels(paths: Sequence[Path], measure: str | None, fixed: float) -> tuple[str, _Panels]:
    """Return the name of the measure, and the pairs of both panels.

    Raises:
        UserError: there is no training with the fixed alpha, or a result lacks a number.
    """
    results = [result for path in paths for result in read_results(path)]
    where = ", ".join(map(str, paths))
    if not results:
        raise UserError(f"{where}: no figures.json, and no metrics.jsonl of a run")
    name = choose_measure([result.values for result in results], measure, where)
    panels = _Panels([], [])
    for result in results:
        attention, output = result.number("attention_alpha"), result.number("output_alpha")
        value = result.number(name)
        if output == fixed:
            panels.attention.append((attention, value))
        if attention == fixed:
            panels.output.append((output, value))
    if not any(panels):
        raise UserError(f"{where}: no training with attention or output alpha {fixed:g}")
    return name, panels


def _draw_panel(axis: Axes, pairs: Sequence[tuple[float, float]], colour: str) -> None:
    """Draw means of pairs of alpha and measure, and the pairs as dots if there are more."""
    by_alpha: dict[float, list[float]] = {alpha: [] for alpha, _ in sorted(pairs)}
    for alpha, value in pairs:
        by_alpha[alpha].append(value)
    alphas = list(by_alpha)
    axis.plot(alphas, [np.mean(values) for values in by_alpha.values()], color=colour, marker="o")
    if len(pairs) > len(alphas):
        axis.plot(*zip(*pairs, strict=True), color=colour, ls="", marker=".", alpha=0.35)
    axis.set_xticks([1, 1.5, 2] if alphas and alphas[-1] <= 2.5 else alphas)
    axis.yaxis.set_major_locator(ticker.MaxNLocator(4))
    axis.grid(axis="y")
    axis.margins(y=0.15)
