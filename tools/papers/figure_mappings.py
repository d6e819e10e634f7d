"""Figures of the mappings (Peters et al. 2019, Figure 3; Martins and Astudillo 2016, 1 and 2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from onmt_entmax.sparse import entmax
from tools.papers.pictures import INK, PAGE, SOFT
from tools.papers.plotting import Axes, Figure, pyplot

NAMED = {1.0: "softmax", 2.0: "sparsemax"}
# A point (t1, t2) in each region of sparsemax, and the size of the support there.
SUPPORTS = (
    (2.1, -1.5, 1),
    (-1.5, 2.1, 1),
    (-2, -2, 1),
    (1.6, 1.6, 2),
    (-2, 0, 2),
    (0, 0, 3),
)


def draw_mappings(alphas: Sequence[float]) -> Figure:
    """Draw the curves of `alphas` in two dimensions, and softmax and sparsemax in three.

    Dots mark saturation, at t = 1 / (alpha - 1); dashed lines divide regions by size of support.
    """
    figure, (curves, softmax, sparsemax) = pyplot.subplots(1, 3, figsize=(PAGE, 2.2))
    _draw_mappings_of_two(curves, alphas)
    _draw_mapping_of_three(softmax, 1.0)
    filled = _draw_mapping_of_three(sparsemax, 2.0)
    ticks = [0, 0.2, 0.4, 0.6, 0.8, 1]
    # Both have the same levels, so one scale is that of both.
    figure.colorbar(filled, ax=[softmax, sparsemax], label="first probability", ticks=ticks)
    return figure


def _draw_mappings_of_two(axis: Axes, alphas: Sequence[float]) -> None:
    """Draw the first probability of two classes with scores (t, 0), a curve for each alpha."""
    limit = 4.5
    t = torch.linspace(-limit, limit, 901).double()
    for number, alpha in enumerate(alphas):
        first = entmax(torch.stack([t, torch.zeros_like(t)], 1), alpha)[:, 0]
        colour = f"C{number}"
        axis.plot(t, first, color=colour, label=NAMED.get(alpha, f"alpha {alpha:g}"))
        saturation = 1 / (alpha - 1) if alpha > 1 else float("inf")
        if saturation <= limit:
            axis.plot([-saturation, saturation], [0, 1], "o", color=colour)
    axis.set(title="two classes, scores (t, 0)", xlabel="t", ylabel="first probability")
    axis.legend(loc="upper left", handlelength=0.8, borderaxespad=0)


def _draw_mapping_of_three(axis: Axes, alpha: float) -> Any:
    """Draw the first probability of three classes; return the filled contours, for their scale."""
    t = torch.linspace(-3, 3, 301).double()
    one, two = torch.meshgrid(t, t, indexing="xy")
    p = entmax(torch.stack([one, two, torch.zeros_like(one)], 2), alpha)
    filled = axis.contourf(one, two, p[..., 0], [n / 10 for n in range(11)], cmap="Blues")
    if alpha > 1:
        style: dict[str, Any] = {"colors": SOFT, "linewidths": 0.8, "linestyles": "--"}
        axis.contour(one, two, (p > 0).sum(2), [1.5, 2.5], **style)
        for x, y, support in SUPPORTS:
            colour = "white" if x > 2 else INK  # the first probability is 1 there: dark blue
            axis.text(x, y, str(support), ha="center", va="center", color=colour)
    axis.set(title=f"{NAMED[alpha]}, scores (t1, t2, 0)", xlabel="t1", ylabel="t2")
    axis.set_aspect("equal")
    return filled
