"""Numbers at axes, and legends."""

from __future__ import annotations

from tools.papers.plotting import Axes, Axis, Figure, ticker


def plain_numbers(axis: Axes) -> None:
    """Label logarithmic axes with 1, 10, 100; those of less than two decades also with 2 and 5."""
    for side in (axis.xaxis, axis.yaxis):
        if side.get_scale() == "log":
            _label_plainly(side)


def _label_plainly(side: Axis) -> None:
    """Label one axis; see `plain_numbers`."""

    def between_powers(value: float, _: int) -> str:
        least, most = side.get_view_interval()
        first_digit = f"{value:e}"[0]
        return f"{value:,g}" if most < 100 * least and first_digit in "25" else ""

    side.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:,g}"))
    side.set_minor_formatter(ticker.FuncFormatter(between_powers))


def legend_above(figure: Figure, axis: Axes) -> None:
    """Draw the legend of an axis above the figure."""
    handles, labels = axis.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=min(len(labels), 6))
