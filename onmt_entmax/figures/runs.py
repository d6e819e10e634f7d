"""Figures that compare runs: a measure over alphas, and over training time."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onmt_entmax.checkpoint import find_model, read_config
from onmt_entmax.errors import UserError
from onmt_entmax.figures.curves import read_metrics
from onmt_entmax.figures.style import COLUMN
from onmt_entmax.files import read_object

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MEASURES = (
    "bleu",
    "accuracy",
    "exact_match",
    "token_accuracy",
    "loss",
)  # the default is the first found
LABELS = {
    "bleu": "BLEU",
    "accuracy": "accuracy (%)",
    "exact_match": "exact match (%)",
    "token_accuracy": "token accuracy (%)",
    "loss": "loss a token",
}
ALPHAS = ("attention_alpha", "output_alpha")


@dataclass(frozen=True)
class Point:
    """One training of a sweep."""

    attention: float
    output: float
    value: float


@dataclass(frozen=True)
class Curve:
    """Measurements of one run by training time."""

    name: str
    seconds: tuple[float, ...]
    values: tuple[float, ...]


def _chosen(rows: Sequence[Mapping[str, Any]], measure: str | None, where: str) -> str:
    """Return the chosen measure, or by default the first in `MEASURES` that every row has.

    Raises:
        UserError: no row has it.
    """
    if measure is None:
        measure = next((m for m in MEASURES if all(m in row for row in rows)), None)
        if measure is None:
            raise UserError(f"{where}: none of {', '.join(MEASURES)} in it; name one by --measure")
    elif not any(measure in row for row in rows):
        raise UserError(f"{where}: no {measure} in it")
    return measure


def _cells(path: Path) -> Iterator[dict[str, Any]]:
    """Yield rows of alphas and measures from a CSV file, figures.json files or a run folder.

    Raises:
        UserError: a file cannot be read.
    """
    if path.is_file():
        try:
            with open(path, encoding="utf-8-sig", newline="") as file:
                yield from csv.DictReader(file)
        except (OSError, UnicodeDecodeError, csv.Error):
            raise UserError(f"{path}: cannot be read as CSV") from None
        return
    for found in sorted(path.rglob("figures.json")):
        if found.parent.name == "ensemble":
            continue
        yield read_object(found)
    if (path / "metrics.jsonl").is_file():
        model = find_model(path)
        config, _ = read_config(model)
        step = int(model.name.removeprefix("step_"))
        measured = [row for row in read_metrics(path) if row["kind"] == "valid"]
        row = next((row for row in measured if row["step"] == step), {})
        alphas = config.source_attention_alpha, config.generator_alpha
        yield {**row, **dict(zip(ALPHAS, alphas, strict=True))}


def read_points(paths: Sequence[Path], measure: str | None) -> tuple[list[Point], str]:
    """Return the trainings of a sweep, and the label of the measure.

    Raises:
        UserError: there are none, or a value is missing or not a number.
    """
    points = []
    found = [(path, row) for path in paths for row in _cells(path)]
    if not found:
        raise UserError(f"{paths[0]}: no figures.json, metrics.jsonl or CSV table there")
    measure = _chosen([row for _, row in found], measure, str(paths[0]))
    for path, row in found:
        try:
            points.append(Point(*(float(row[key]) for key in (*ALPHAS, measure))))
        except (KeyError, TypeError, ValueError):
            raise UserError(
                f"{path}: a row without {', '.join(ALPHAS)} and {measure} as numbers"
            ) from None
    return points, LABELS.get(measure, measure)


def draw_sweep(points: Sequence[Point], label: str, fixed: float) -> Figure:
    """Draw the measure over attention alpha, and over output alpha, in two panels.

    Args:
        points: trainings. The line is the mean over seeds, which are dots.
        label: label of the measure.
        fixed: value of the other alpha.

    Raises:
        UserError: no training has this value.
    """
    from matplotlib import pyplot
    from matplotlib.ticker import MaxNLocator

    panels = {
        "attention α": [(p.attention, p.value) for p in points if p.output == fixed],
        "output α": [(p.output, p.value) for p in points if p.attention == fixed],
    }
    if not any(panels.values()):
        raise UserError(f"no training has attention alpha or output alpha {fixed:g}")
    figure, axes = pyplot.subplots(1, 2, figsize=(COLUMN, 1.65), sharey=True)
    for axis, colour, (name, pairs) in zip(axes, ("C0", "C1"), panels.items(), strict=True):
        alphas = sorted({alpha for alpha, _ in pairs})
        seeds = {alpha: [value for a, value in pairs if a == alpha] for alpha in alphas}
        means = [sum(values) / len(values) for values in seeds.values()]
        axis.plot(alphas, means, color=colour, marker="o")
        if any(len(values) > 1 for values in seeds.values()):
            axis.plot(*zip(*pairs, strict=True), color=colour, ls="", marker=".", alpha=0.35)
        axis.set_xlabel(name)
        axis.set_xticks([1, 1.5, 2] if alphas and alphas[-1] <= 2.5 else alphas)
        axis.yaxis.set_major_locator(MaxNLocator(4))
        axis.grid(axis="y")
        axis.margins(y=0.15)
    axes[0].set_ylabel(label)
    return figure


def read_curves(
    runs: Sequence[Path], names: Sequence[str], measure: str | None
) -> tuple[list[Curve], str]:
    """Return development measurements of runs by time, and the label of the measure.

    Raises:
        UserError: a run has no measurements, or not this one.
    """
    measured = []
    for run in runs:
        rows = [r for r in read_metrics(run) if r.get("kind") == "valid" and "seconds" in r]
        if not rows:
            raise UserError(f"{run}: nothing was measured on a development set yet")
        measured.append(rows)
    measure = _chosen([row for rows in measured for row in rows], measure, str(runs[0]))
    curves = []
    for run, name, rows in zip(runs, names, measured, strict=True):
        pairs = [(row["seconds"], row[measure]) for row in rows if measure in row]
        if not pairs:
            raise UserError(f"{run}: no {measure} in it")
        curves.append(Curve(name, *zip(*pairs, strict=True)))
    return curves, LABELS.get(measure, measure)


def draw_time(curves: Sequence[Curve], label: str) -> Figure:
    """Draw the measure over training time; the first curve of each name has markers."""
    from matplotlib import pyplot
    from matplotlib.ticker import MaxNLocator

    longest = max(curve.seconds[-1] for curve in curves)
    units = (("hours", 3600), ("minutes", 60), ("seconds", 1))
    unit, size = next((u, s) for u, s in units if longest > 2 * s or s == 1)
    figure, axis = pyplot.subplots(figsize=(COLUMN, 2.2))
    names = list(dict.fromkeys(curve.name for curve in curves))
    seen: set[str] = set()
    markers = "osD^vP*"
    for curve in curves:
        place = names.index(curve.name)
        again = curve.name in seen
        axis.plot(
            [second / size for second in curve.seconds],
            curve.values,
            color=f"C{place}",
            marker="" if again else markers[place % len(markers)],
            label=None if again else curve.name,
        )
        seen.add(curve.name)
    axis.set_xlabel(f"{unit} of training")
    axis.set_ylabel(f"development {label}")
    axis.set_xlim(left=0)
    axis.xaxis.set_major_locator(MaxNLocator(6))
    axis.grid(axis="y")
    axis.legend()  # where it hides the least
    return figure
