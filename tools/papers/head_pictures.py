"""Pictures of all attention heads of models, for `heads.py`.

Numbers of figures are those of Correia, Niculae and Martins (2019).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from onmt_entmax.nn.transformer import ATTENTION_KINDS
from tools.papers.alpha_trajectory import Trajectory
from tools.papers.corpus_measures import BINS
from tools.papers.head_summary import KindSummary, Models, by_kind
from tools.papers.picture_axes import legend_above
from tools.papers.pictures import INK, PAGE
from tools.papers.plotting import Axes, Figure, pyplot

TITLES = {
    "encoder": "encoder self-attention",
    "decoder": "decoder self-attention",
    "context": "context attention",
}


class Panels(NamedTuple):
    """A figure with a column of panels for each kind of attention.

    Attributes:
        figure: the figure.
        axes: axes of the panels, `(rows, kinds)`.
    """

    figure: Figure
    axes: np.ndarray


def panels(height: float, rows: int = 1) -> Panels:
    """Return an empty figure.

    Args:
        height: height of a row in inches.
        rows: number of rows.
    """
    figure, axes = pyplot.subplots(
        rows, len(ATTENTION_KINDS), figsize=(PAGE, height * rows), sharey="row", squeeze=False
    )
    for axis, kind in zip(axes[0], ATTENTION_KINDS, strict=True):
        axis.set_title(TITLES[kind])
    for axis in axes.flat:
        axis.grid(axis="y")
    return Panels(figure, axes)


def shade(index: int, count: int) -> str | tuple[float, float, float, float]:
    """Return the colour of line `index` of `count`, on a scale from blue to yellow."""
    if count == 1:
        return INK
    lightest = 0.92  # the last yellow is too light on white
    return pyplot.get_cmap("viridis")(index / (count - 1) * lightest)


def draw_trajectories(trajectory: Trajectory) -> Figure:
    """Draw learned alphas over training (Figure 2), those of a layer in one colour."""
    steps, alphas = trajectory
    figure, (axes,) = panels(1.9)
    for axis, kind in zip(axes, ATTENTION_KINDS, strict=True):
        axis.set_ylim(1, 2)
        axis.set_xlabel("training steps")
        layers = alphas[kind].shape[1] if kind in alphas else 0
        for layer in range(layers):
            colour = shade(layer, layers)
            lines = axis.plot(steps, alphas[kind][:, layer], color=colour, linewidth=0.8)
            lines[0].set_label(f"layer {layer + 1}")
    axes[0].set_ylabel("alpha")
    drawn = [axis for axis in axes if axis.lines]
    legend_above(figure, drawn[0])  # that of all others is the same
    return figure


def draw_alphas(models: Models) -> Figure:
    """Draw histograms of the heads' alphas (Figures 3 and 11)."""

    def draw(axis: Axes, name: str, measures: KindSummary) -> None:
        alphas = np.ravel(measures["alpha"]).clip(1, 2)
        axis.hist(alphas, np.linspace(1, 2, 21).tolist(), alpha=0.6, label=name)
        locator: Any = axis.yaxis.get_major_locator()
        locator.set_params(integer=True)
        axis.set_xlim(1, 2)

    return _compared(models, draw, "alpha", "heads")


def draw_densities(models: Models) -> Figure:
    """Draw distributions of density over heads and sentences (Figures 4 and 12)."""

    def draw(axis: Axes, name: str, measures: KindSummary) -> None:
        axis.stairs(measures["density_histogram"], np.linspace(0, 1, BINS + 1), label=name)
        axis.set_xlim(0, 1.01)

    return _compared(models, draw, "density", "share of heads and sentences")


def draw_divergence(models: Models) -> Figure:
    """Draw the divergence between the heads of each layer (Figures 6 and 13)."""

    def draw(axis: Axes, name: str, measures: KindSummary) -> None:
        layers = range(1, len(measures["divergence"]) + 1)
        axis.plot(layers, measures["divergence"], marker="o", label=name)
        axis.set_xticks(layers)

    return _compared(models, draw, "layer", "divergence of heads")


def _compared(
    models: Models,
    draw: Callable[[Axes, str, KindSummary], None],
    xlabel: str,
    ylabel: str,
) -> Figure:
    """Draw all models in a panel for each kind of attention.

    Args:
        models: measures by the name of the model.
        draw: draws one model on an axis, from its name and its measures of one kind.
        xlabel: label below all panels.
        ylabel: label of the vertical axis, which the panels share.
    """
    figure, (axes,) = panels(1.8)
    for axis, kind in zip(axes, ATTENTION_KINDS, strict=True):
        for name, model in models.items():
            draw(axis, name, by_kind(model)[kind])
        axis.set_xlabel(xlabel)
    axes[0].set_ylim(bottom=0)  # of all panels
    axes[0].set_ylabel(ylabel)
    legend_above(figure, axes[0])
    return figure


def draw_layers(models: Models) -> Figure:
    """Draw the density of the heads of each layer (Figures 5 and 14); a row for each model.

    Line h joins the h-th least dense head of each layer.
    """
    figure, grid = panels(1.35, len(models))
    for axes, (name, model) in zip(grid, models.items(), strict=True):
        for axis, kind in zip(axes, ATTENTION_KINDS, strict=True):
            density = np.sort(np.array(by_kind(model)[kind]["density"]), axis=1)  # (layers, heads)
            layers, heads = density.shape
            for head in range(heads):
                colour = shade(head, heads)
                axis.plot(range(1, layers + 1), density[:, head], color=colour, marker="o")
            axis.set_ylim(0, 1.03)
            axis.set_xticks(range(1, layers + 1))
        axes[0].set_ylabel(f"{name}\ndensity")
    for axis in grid[-1]:
        axis.set_xlabel("layer")
    return figure
