"""Attention weights as a heat map, in which only exact zeros are white."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from tools.papers.pictures import INK, SOFT, readable
from tools.papers.plotting import Axes, AxesImage, Figure

POINTS = 72  # of an inch
# Points of the font of tokens: this share of a cell, within the limits.
FONT_SHARE = 0.62
SMALLEST_FONT, LARGEST_FONT = 4.0, 8.0
# From just above 0 to 1; the palest blue must differ from white at a glance.
BLUES = ("#D9E8F5", "#5A9BD0", "#08306B")


def heat_map(
    axis: Axes, weights: np.ndarray, lines: Sequence[str], columns: Sequence[str], cell: float
) -> AxesImage:
    """Draw attention weights; only zero is white, and all other cells have an outline.

    Args:
        axis: the axis to draw on.
        weights: `(lines, columns)`, from 0 to 1.
        lines: tokens that attend.
        columns: tokens that are attended to.
        cell: size of a cell in inches.

    Returns:
        The image, for `heat_scale`.
    """
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.patches import Rectangle

    size = max(SMALLEST_FONT, min(LARGEST_FONT, FONT_SHARE * POINTS * cell))
    blues = LinearSegmentedColormap.from_list("blues", BLUES)
    image = axis.imshow(
        np.ma.masked_equal(weights, 0.0), cmap=blues, vmin=0, vmax=1, aspect="equal"
    )
    for line, column in zip(*weights.nonzero(), strict=True):
        corner = (column - 0.5, line - 0.5)
        axis.add_patch(Rectangle(corner, 1, 1, fill=False, edgecolor=INK, linewidth=0.5))
    axis.set_xticks(range(len(columns)), list(map(readable, columns)), rotation=90, fontsize=size)
    axis.set_yticks(range(len(lines)), list(map(readable, lines)), fontsize=size)
    axis.tick_params(length=0, pad=3, top=True, labeltop=True, bottom=False, labelbottom=False)
    for spine in axis.spines.values():
        spine.set(visible=True, linewidth=0.4, color=SOFT)
    return image


def heat_scale(figure: Figure, image: AxesImage, axes: Axes | Iterable[Axes]) -> None:
    """Draw the scale of heat maps beside them.

    Args:
        figure: the figure that has the maps.
        image: image of any map, as `heat_map` returns it; all have the same colours.
        axes: axes of the maps; one, or several.
    """
    bar = figure.colorbar(image, ax=axes, fraction=0.04, pad=0.02, aspect=12, shrink=0.6)
    bar.set_ticks([0, 0.5, 1])
    bar.outline.set_linewidth(0.4)
    bar.ax.tick_params(length=2, labelsize=6.5)
