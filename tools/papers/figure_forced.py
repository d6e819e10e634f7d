"""Draw the possible tokens along a target (Peters et al. 2019, Figure 2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tools.papers.figure_sentence import Sentence
from tools.papers.forced_columns import Entry, columns_of
from tools.papers.pictures import INK, PAGE, SOFT, measuring_figure
from tools.papers.plotting import Figure

# Inches.
LINE = 0.155  # height of a line
GAP = 0.09  # beside a text
ABOVE = 0.07  # above the first line of a column, and below the last
BETWEEN = 0.16  # between two bands of columns
WARN = "#D55E00"  # colour of a token that the model excludes


class Column(NamedTuple):
    """A column.

    Attributes:
        entries: its lines.
        left: its left edge, in inches.
        width: width in inches.
    """

    entries: list[Entry]
    left: float
    width: float


def draw_forced(sentence: Sentence) -> Figure:
    """Draw columns of possible tokens, those of the target in bold."""
    figure, width_of = measuring_figure()
    bands = _bands(columns_of(sentence), width_of)
    heights = [LINE * max(len(column.entries) for column in band) + 2 * ABOVE for band in bands]
    page = max(band[-1].left + band[-1].width for band in bands)
    height = top = sum(heights) + BETWEEN * (len(bands) - 1)
    figure.set_size_inches(page, height)
    for band, band_height in zip(bands, heights, strict=True):
        for column in band:
            _draw_column(figure, column, top, band_height)
        top -= band_height + BETWEEN
    return figure


def _bands(columns: Sequence[list[Entry]], width_of: Callable[..., float]) -> list[list[Column]]:
    """Return columns in as many bands, one below the other, as the page needs."""
    bands: list[list[Column]] = [[]]
    left = 0.0
    for entries in columns:
        names = max(width_of(entry.text, **entry.style) for entry in entries)
        shares = max(width_of(entry.share, **entry.style) for entry in entries)
        width = names + (shares + GAP if shares else 0) + 2 * GAP
        if left and left + width > PAGE:
            bands.append([])
            left = 0.0
        bands[-1].append(Column(entries, left, width))
        left += width
    return bands


def _draw_column(figure: Figure, column: Column, top: float, height: float) -> None:
    """Draw a column between two lines; its top and height are in inches."""
    from matplotlib.lines import Line2D

    page_width, page_height = figure.get_size_inches()
    right = column.left + column.width
    for side in (column.left, right):
        ends = [(top - height) / page_height, top / page_height]
        figure.add_artist(Line2D([side / page_width] * 2, ends, color=SOFT, linewidth=0.5))
    for number, entry in enumerate(column.entries):
        y = (top - ABOVE - LINE * (number + 0.5)) / page_height
        colour = WARN if entry.impossible else INK
        style = {**entry.style, "va": "center_baseline", "color": colour}
        figure.text((column.left + GAP) / page_width, y, entry.text, **style)
        figure.text((right - GAP) / page_width, y, entry.share, ha="right", **style)
