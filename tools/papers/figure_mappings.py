"""Figures of the mappings (Peters et al. 2019, Figure 3; Martins and Astudillo 2016, 1 and 2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from onmt_entmax.sparse import entmax
from tools.papers.pictures import INK, PAGE, SOFT
from tools.papers.plotting import Axes, Figure, pyplot

NAMED = {1.0: "softmax", 2.0: "sparsemax"}
# Largest scores in the panels of two and of three classes, and points of each axis: enough for
# curves and contours without visible corners.
LARGEST_OF_TWO, POINTS_OF_TWO = 4.5, 901
LARGEST_OF_THREE, POINTS_OF_THREE = 3, 301
LEVELS = [n / 10 for n in range(11)]  # of the first probability, between filled contours
BETWEEN_SUPPORTS = [1.5, 2.5]  # contours that divide supports of 1, 2 and 3 classes


class Region(NamedTuple):
    """A point in a region of sparsemax's scores (t1, t2, 0), and the size of the support there."""

    t1: float
    t2: float
    support: int


REGIONS = (
    Region(2.1, -1.5, support=1),
    Region(-1.5, 2.1, support=1),
    Region(-2, -2, support=1),
    Region(1.6, 1.6, support=2),
    Region(-2, 0, support=2),
    Region(0, 0, support=3),
)
DARK_FROM = 2  # the first probability is 1 in regions right of this t1, so that they are dark blue


def draw_mappings(alphas: Sequence[float]) -> Figure:
    """Draw the curves of `alphas` in two dimensions, and softmax and sparsemax in three.

    Dots mark saturation, at t = 1 / (alpha - 1); dashed lines divide regions by size of support.
    """
    figure, (curves, softmax, sparsemax) = pyplot.subplots(1, 3, figsize=(PAGE, 2.2))
    _draw_mappings_of_two(curves, alphas)
    _draw_mapping_of_three(softmax, 1.0)
    filled = _draw_mapping_of_three(sparsemax, 2.0)
    # Both have the same levels, so one scale is that of both.
    figure.colorbar(filled, ax=[softmax, sparsemax], label="first probability", ticks=LEVELS[::2])
    return figure


def _draw_mappings_of_two(axis: Axes, alphas: Sequence[float]) -> None:
    """Draw the first probability of two classes with scores (t, 0), a curve for each alpha."""
    t = torch.linspace(-LARGEST_OF_TWO, LARGEST_OF_TWO, POINTS_OF_TWO).double()
    for number, alpha in enumerate(alphas):
        first = entmax(torch.stack([t, torch.zeros_like(t)], 1), alpha)[:, 0]
        colour = f"C{number}"
        axis.plot(t, first, color=colour, label=NAMED.get(alpha, f"alpha {alpha:g}"))
        saturation = 1 / (alpha - 1) if alpha > 1 else float("inf")
        if saturation <= LARGEST_OF_TWO:
            axis.plot([-saturation, saturation], [0, 1], "o", color=colour)
    axis.set(title="two classes, scores (t, 0)", xlabel="t", ylabel="first probability")
    axis.legend(loc="upper left", handlelength=0.8, borderaxespad=0)


def _draw_mapping_of_three(axis: Axes, alpha: float) -> Any:
    """Draw the first probability of three classes; return the filled contours, for their scale."""
    t = torch.linspace(-LARGEST_OF_THREE, LARGEST_OF_THREE, POINTS_OF_THREE).double()
    one, two = torch.meshgrid(t, t, indexing="xy")
    p = entmax(torch.stack([one, two, torch.zeros_like(one)], 2), alpha)
    filled = axis.contourf(one, two, p[..., 0], LEVELS, cmap="Blues")
    if alpha > 1:
        style: dict[str, Any] = {"colors": SOFT, "linewidths": 0.8, "linestyles": "--"}
        axis.contour(one, two, (p > 0).sum(2), BETWEEN_SUPPORTS, **style)
        for region in REGIONS:
            colour = "white" if region.t1 > DARK_FROM else INK
            axis.text(
                region.t1, region.t2, str(region.support), ha="center", va="center", color=colour
            )
    axis.set(title=f"{NAMED[alpha]}, scores (t1, t2, 0)", xlabel="t1", ylabel="t2")
    axis.set_aspect("equal")
    return filled
