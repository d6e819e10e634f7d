"""The figure of a measure over alphas of attention and output (Peters et al. 2019, Figure 4)."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from onmt_entmax.checkpoint import find_model, read_config
from onmt_entmax.errors import UserError
from onmt_entmax.files import read_lines, read_object
from tools.papers.metrics import MEASURES, choose_measure, read_metrics
from tools.papers.pictures import COLUMN, Axes, Figure, pyplot, ticker


def sweep_rows(path: Path) -> Iterator[Mapping[str, Any]]:
    """Yield rows of alphas and measures from a CSV file, figures.json files or a run folder.

    Raises:
        UserError: a file cannot be read.
    """
    if not path.is_dir():
        yield from csv.DictReader(read_lines(path))
        return
    for file in sorted(path.rglob("figures.json")):
        if file.parent.name != "ensemble":
            yield read_object(file)
    if (path / "metrics.jsonl").is_file():
        model = find_model(path)
        config = read_config(model).network
        step = int(model.name.removeprefix("step_"))
        measured = [
            row for row in read_metrics(path) if row["kind"] == "valid" and row["step"] == step
        ]
        yield {
            **(measured[0] if measured else {}),
            "attention_alpha": config.source_attention_alpha,
            "output_alpha": config.generator_alpha,
        }


def draw_sweep(
    paths: Sequence[Path], measure: str | None, label: str | None, fixed: float
) -> Figure:
    """Draw a measure over attention alpha, and over output alpha, in two panels.

    Args:
        paths: of the trainings. The line is the mean over seeds, which are dots.
        measure: its name; None takes the first found.
        label: of the vertical axis.
        fixed: value of the other alpha.

    Raises:
        UserError: there is no training with this value, or a row lacks a number.
    """
    rows = [row for path in paths for row in sweep_rows(path)]
    measure = choose_measure(rows, measure, paths[0]) if rows else ""
    try:
        points = [
            _Point(float(row["attention_alpha"]), float(row["output_alpha"]), float(row[measure]))
            for row in rows
        ]
    except (KeyError, TypeError, ValueError):
        raise UserError(
            f"{paths[0]}: a row without attention_alpha, output_alpha and {measure} as numbers"
        ) from None
    panels = {
        "attention α": [
            (point.attention, point.value) for point in points if point.output == fixed
        ],
        "output α": [(point.output, point.value) for point in points if point.attention == fixed],
    }
    if not any(panels.values()):
        raise UserError(f"{paths[0]}: no training with attention or output alpha {fixed:g}")
    figure, axes = pyplot.subplots(1, 2, figsize=(COLUMN, 1.65), sharey=True)
    for axis, colour, (name, pairs) in zip(axes, ("C0", "C1"), panels.items(), strict=True):
        _draw_panel(axis, pairs, colour)
        axis.set_xlabel(name)
    axes[0].set_ylabel(label or MEASURES.get(measure, measure))
    return figure


class _Point(NamedTuple):
    """A training of a sweep.

    Attributes:
        attention: alpha of attention.
        output: alpha of the output.
        value: its measure.
    """

    attention: float
    output: float
    value: float


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
