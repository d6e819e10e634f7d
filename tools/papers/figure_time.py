"""The figure of a development measure over training time (Peters et al. 2019, Figure 6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from onmt_entmax.errors import UserError
from tools.papers.metrics import MEASURES, choose_measure, read_metrics, series
from tools.papers.pictures import COLUMN
from tools.papers.plotting import Axes, Figure, pyplot, ticker

HEIGHT = 2.2  # inches
MARKERS = "osD^vP*"  # of names, in their order


class _Unit(NamedTuple):
    """A unit of time."""

    name: str
    seconds: int


UNITS = (_Unit("hours", 3600), _Unit("minutes", 60))
FEWEST_UNITS = 2  # on an axis


class Curve(NamedTuple):
    """A measure of a run at its validations.

    Attributes:
        name: name of the run; several may share it.
        seconds: since the training began.
        values: values of the measure.
    """

    name: str
    seconds: Sequence[float]
    values: Sequence[float]


def draw_time(
    runs: Sequence[Path], names: Sequence[str], measure: str | None, label: str | None
) -> Figure:
    """Draw a development measure over training time.

    Args:
        runs: folders.
        names: names of the runs; those of the same name share a colour.
        measure: name of the measure; None: the first that all validations have.
        label: label of the vertical axis, after "development"; None: the measure's own.

    Raises:
        UserError: a run has no measurements, or not this one.
    """
    logs = [read_metrics(run) for run in runs]
    validations = [row for rows in logs for row in rows if row["kind"] == "valid"]
    chosen = choose_measure(validations, measure, runs[0])
    curves = [
        _curve(run, name, chosen, rows) for run, name, rows in zip(runs, names, logs, strict=True)
    ]
    unit = _unit_of(max(curve.seconds[-1] for curve in curves))
    figure, axis = pyplot.subplots(figsize=(COLUMN, HEIGHT))
    _draw_curves(axis, curves, unit)
    axis.set_xlabel(f"{unit.name} of training")
    axis.set_ylabel(f"development {label or MEASURES.get(chosen, chosen)}")
    axis.set_xlim(left=0)
    axis.xaxis.set_major_locator(ticker.MaxNLocator(6))
    axis.grid(axis="y")
    axis.legend()  # where it hides the least
    return figure


def _curve(run: Path, name: str, measure: str, rows: Sequence[Mapping[str, Any]]) -> Curve:
    """Return the curve of a run.

    Args:
        run: folder of the run, for the error.
        name: name of the run.
        measure: name of the measure.
        rows: all measurements of the run, as `read_metrics` returns them.

    Raises:
        UserError: the run has no such measurements.
    """
    seconds, values = series(rows, "valid", measure, over="seconds")
    if not values:
        raise UserError(f"{run}: no {measure} was measured on a development set yet")
    return Curve(name, seconds, values)


def _unit_of(seconds: float) -> _Unit:
    """Return the unit of an axis up to `seconds`: the largest of which it has at least two.

    With fewer, all numbers at the axis would have decimals.
    """
    for unit in UNITS:
        if seconds > FEWEST_UNITS * unit.seconds:
            return unit
    return _Unit("seconds", 1)


def _draw_curves(axis: Axes, curves: Sequence[Curve], unit: _Unit) -> None:
    """Draw curves: those of a name in one colour, of which the first has markers and a label."""
    numbers: dict[str, int] = {}  # names in order of appearance; choose colour and marker
    for curve in curves:
        is_first = curve.name not in numbers
        number = numbers.setdefault(curve.name, len(numbers))
        axis.plot(
            [seconds / unit.seconds for seconds in curve.seconds],
            curve.values,
            color=f"C{number}",
            marker=MARKERS[number % len(MARKERS)] if is_first else "",
            label=curve.name if is_first else None,
        )
