"""Figure of the mappings for two and three classes.

After Martins and Astudillo (2016), Figures 1 and 2, and Peters, Niculae and Martins (2019),
Figure 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from onmt_entmax.figures.style import INK, PAGE, SOFT
from onmt_entmax.sparse import entmax

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_REACH = 3.0  # of the scores that are drawn for three classes
_REACH_OF_CURVES = 4.5
_NAMES = {1.0: "softmax", 2.0: "sparsemax"}


def draw_mappings(alphas: Sequence[float]) -> Figure:
    """Draw the curves of `alphas` in two dimensions, and softmax and sparsemax in three.

    Args:
        alphas: numbers from 1 up.
    """
    from matplotlib import pyplot

    figure, (curves, *surfaces) = pyplot.subplots(1, 3, figsize=(PAGE, 2.2))
    _curves(curves, alphas)
    for axis, alpha in zip(surfaces, (1.0, 2.0), strict=True):
        filled = _surface(axis, alpha)
    figure.colorbar(
        filled, ax=surfaces, label="first probability", ticks=[0, 0.2, 0.4, 0.6, 0.8, 1]
    )
    return figure


def _curves(axis: Any, alphas: Sequence[float]) -> None:
    """Draw the first probability of scores (t, 0), with a dot at t = 1 / (alpha - 1)."""
    t = torch.linspace(-_REACH_OF_CURVES, _REACH_OF_CURVES, 901).double()
    for n, alpha in enumerate(alphas):
        first = entmax(torch.stack([t, torch.zeros_like(t)], 1), alpha)[:, 0]
        axis.plot(t, first, color=f"C{n}", label=_NAMES.get(alpha, f"alpha {alpha:g}"))
        if alpha > 1 and (end := 1 / (alpha - 1)) <= _REACH_OF_CURVES:
            axis.plot([-end, end], [0, 1], "o", color=f"C{n}")
    axis.set_title("two classes, scores (t, 0)")
    axis.set_xlabel("t")
    axis.set_ylabel("first probability")
    axis.legend(loc="upper left", handlelength=0.8, borderaxespad=0)


def _surface(axis: Any, alpha: float) -> Any:
    """Draw the first probability of scores (t1, t2, 0), and edges of the support; return areas."""
    t = torch.linspace(-_REACH, _REACH, 301).double()
    first, second = torch.meshgrid(t, t, indexing="xy")
    p = entmax(torch.stack([first, second, torch.zeros_like(first)], 2), alpha)
    filled = axis.contourf(first, second, p[..., 0], [n / 10 for n in range(11)], cmap="Blues")
    if alpha > 1:
        size = (p > 0).sum(2)
        axis.contour(first, second, size, [1.5, 2.5], colors=SOFT, linewidths=0.8, linestyles="--")
        places = ((2.1, -1.5, 1), (-1.5, 2.1, 1), (-2, -2, 1), (1.6, 1.6, 2), (-2, 0, 2), (0, 0, 3))
        for x, y, count in places:
            colour = "white" if x > 2 else INK
            axis.text(x, y, count, ha="center", va="center", color=colour)
    axis.set_title(f"{_NAMES[alpha]}, scores (t1, t2, 0)")
    axis.set_xlabel("t1")
    axis.set_ylabel("t2")
    axis.set_aspect("equal")
    return filled
