"""Figures of training runs: curves, sweeps over alpha, and measures over time."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from onmt_entmax.checkpoint import find_model, read_config
from onmt_entmax.errors import UserError
from onmt_entmax.files import read_lines, read_object
from tools.papers.pictures import COLUMN, Axes, Figure, plain_numbers, pyplot, ticker

MEASURES = {  # the default is the first found
    "bleu": "BLEU",
    "accuracy": "accuracy (%)",
    "exact_match": "exact match (%)",
    "token_accuracy": "token accuracy (%)",
    "loss": "loss a token",
}
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


def read_metrics(run: Path) -> list[dict[str, Any]]:
    """Return the measurements of a run in order of time, each with its `kind` and `step`.

    An incomplete last line, left by a killed run, is ignored.

    Raises:
        UserError: the file cannot be read, or a line is no measurement.
    """
    path, rows = run / "metrics.jsonl", []
    lines = list(read_lines(path))
    for number_of_line, line in enumerate(lines, 1):
        try:
            row = json.loads(line)
            rows.append({**row, "kind": str(row["kind"]), "step": int(row["step"])})
        except (ValueError, KeyError, TypeError):
            if number_of_line < len(lines):
                raise UserError(f"{path}:{number_of_line}: not a measurement") from None
    return rows


def series(rows: Sequence[Mapping[str, Any]], kind: str, name: str, over: str = "step") -> Any:
    """Return steps (or another key) and values of one measurement."""
    chosen = [row for row in rows if row["kind"] == kind and name in row and over in row]
    return [row[over] for row in chosen], [row[name] for row in chosen]


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
    lines = -(-len(shown) // columns)
    size = (3.4 * columns, 2.4 * lines)
    figure, axes = pyplot.subplots(lines, columns, figsize=size, squeeze=False)
    for panel, axis in zip(shown, axes.flat, strict=False):
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


def choose_measure(rows: Sequence[Mapping[str, Any]], measure: str | None, where: object) -> str:
    """Return the measure, or by default the first in `MEASURES` that every row has.

    Raises:
        UserError: no row has it.
    """
    if measure is None:
        measure = next((name for name in MEASURES if all(name in row for row in rows)), None)
    if measure is None or not any(measure in row for row in rows):
        raise UserError(f"{where}: no {measure or ', '.join(MEASURES)} in it; see --measure")
    return measure


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
        config = read_config(model)[0]
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
        "attention α": [(p.attention, p.value) for p in points if p.output == fixed],
        "output α": [(p.output, p.value) for p in points if p.attention == fixed],
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
    """A training of a sweep: alphas of attention and output, and its measure."""

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
    longest = max(seconds[-1] for seconds, _ in curves)
    units = (("hours", 3600), ("minutes", 60), ("seconds", 1))
    unit, size = next((name, size) for name, size in units if longest > 2 * size or size == 1)
    figure, axis = pyplot.subplots(figsize=(COLUMN, 2.2))
    different = list(dict.fromkeys(names))
    for index, (name, (seconds, values)) in enumerate(zip(names, curves, strict=True)):
        number, is_repeated = different.index(name), name in names[:index]
        axis.plot(
            [second / size for second in seconds],
            values,
            color=f"C{number}",
            marker="" if is_repeated else "osD^vP*"[number % 7],
            label=None if is_repeated else name,
        )
    axis.set_xlabel(f"{unit} of training")
    axis.set_ylabel(f"development {label or MEASURES.get(measure, measure)}")
    axis.set_xlim(left=0)
    axis.xaxis.set_major_locator(ticker.MaxNLocator(6))
    axis.grid(axis="y")
    axis.legend()  # where it hides the least
    return figure
