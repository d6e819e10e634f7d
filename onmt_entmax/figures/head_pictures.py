"""Pictures of the heads of Transformers, after the figures of Correia et al. (2019)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from onmt_entmax.figures.heads import BINS, Floats
from onmt_entmax.figures.sentence import heat_map, heat_scale
from onmt_entmax.figures.style import INK, PAGE
from onmt_entmax.nn.transformer import KINDS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLES = {
    "encoder": "encoder self-attention",
    "decoder": "decoder self-attention",
    "context": "context attention",
}
Measured = Mapping[str, Mapping[str, Any]]  # measures by name of the model


@dataclass(frozen=True)
class Shown:
    """A head's attention in one sentence.

    Attributes:
        title: above the heat map.
        weights: ``(lines, columns)``.
        lines: tokens that attend.
        columns: tokens that are attended to.
    """

    title: str
    weights: Floats
    lines: tuple[str, ...]
    columns: tuple[str, ...]


def draw_trajectories(steps: Sequence[int], alphas: Mapping[str, Floats]) -> Figure:
    """Draw learned alphas over training (Figure 2), a line for each head.

    Args:
        steps: updates.
        alphas: by kind, of those that are learned, ``(steps, layers, heads)``.
    """
    figure, axes = _panels(1.9)
    for axis, kind in zip(axes, KINDS, strict=True):
        axis.set_ylim(1, 2)
        axis.set_xlabel("training steps")
        if kind not in alphas:
            continue
        layers = alphas[kind].shape[1]
        for layer in range(layers):
            lines = axis.plot(
                steps, alphas[kind][:, layer], color=_shade(layer, layers), linewidth=0.8
            )
            lines[0].set_label(f"layer {layer + 1}")
    axes[0].set_ylabel("alpha")
    _legend(figure, axes[KINDS.index(next(iter(alphas)))])
    return figure


def draw_alphas(measured: Measured) -> Figure:
    """Draw histograms of the heads' alphas (Figures 3 and 11)."""
    figure, axes = _panels(1.8)
    edges = np.linspace(1, 2, 21)
    for axis, kind in zip(axes, KINDS, strict=True):
        for name, model in measured.items():
            alphas = np.ravel(model[kind]["alpha"]).clip(1, 2)
            axis.hist(alphas, edges, alpha=0.6, label=name)
        axis.set_xlim(1, 2)
        axis.set_xlabel("alpha")
        axis.yaxis.get_major_locator().set_params(integer=True)
    axes[0].set_ylabel("heads")
    _legend(figure, axes[0])
    return figure


def draw_densities(measured: Measured) -> Figure:
    """Draw the distribution of densities over heads and sentences (Figures 4, 12 and 14)."""
    figure, axes = _panels(1.8)
    edges = np.linspace(0, 1, BINS + 1)
    for axis, kind in zip(axes, KINDS, strict=True):
        for name, model in measured.items():
            axis.stairs(model[kind]["density_histogram"], edges, label=name)
        axis.set_xlim(0, 1.01)
        axis.set_xlabel("density")
    axes[0].set_ylim(bottom=0)  # of all panels, which share it
    axes[0].set_ylabel("share of heads and sentences")
    _legend(figure, axes[0])
    return figure


def draw_layers(measured: Measured) -> Figure:
    """Draw the density of the heads of each layer, sorted (Figure 5); a row for each model."""
    figure, grid = _panels(1.35, rows=len(measured))
    grid = np.atleast_2d(grid)
    for axes, (name, model) in zip(grid, measured.items(), strict=True):
        for axis, kind in zip(axes, KINDS, strict=True):
            density = np.sort(np.array(model[kind]["density"]), axis=1)
            layers, heads = density.shape
            for head in range(heads):
                shade = _shade(head, heads)
                axis.plot(range(1, layers + 1), density[:, head], color=shade, marker="o")
            axis.set_ylim(0, 1.03)
            axis.set_xticks(range(1, layers + 1))
        axes[0].set_ylabel(f"{name}\ndensity")
    for axis in grid[-1]:
        axis.set_xlabel("layer")
    return figure


def draw_divergence(measured: Measured) -> Figure:
    """Draw the Jensen-Shannon divergence between the heads of each layer (Figures 6 and 13)."""
    figure, axes = _panels(1.8)
    for axis, kind in zip(axes, KINDS, strict=True):
        for name, model in measured.items():
            values = model[kind]["divergence"]
            axis.plot(range(1, len(values) + 1), values, marker="o", label=name)
            axis.set_xticks(range(1, len(values) + 1))
        axis.set_xlabel("layer")
    axes[0].set_ylim(bottom=0)  # of all panels, which share it
    axes[0].set_ylabel("divergence of heads")
    _legend(figure, axes[0])
    return figure


def draw_heads(shown: Sequence[Shown], across: int) -> Figure:
    """Draw attention of heads, at most `across` side by side (Figures 7 to 10)."""
    from matplotlib import pyplot

    across = min(len(shown), across)
    rows = -(-len(shown) // across)
    longest = max(len(each.columns) for each in shown)
    cell = min(0.17, (PAGE / across - 0.75) / longest)
    height = cell * max(len(each.lines) for each in shown) + 0.95
    figure, axes = pyplot.subplots(rows, across, figsize=(PAGE, height * rows), squeeze=False)
    for axis, each in zip(axes.flat, shown, strict=False):
        image = heat_map(axis, each.weights, each.lines, each.columns, cell)
        axis.set_title(each.title, fontsize=7)
    for axis in axes.flat[len(shown) :]:
        axis.set_visible(False)
    heat_scale(figure, image, axes)
    return figure


def _panels(height: float, rows: int = 1) -> tuple[Figure, Any]:
    """Return a figure with a panel for each kind of attention."""
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(rows, len(KINDS), figsize=(PAGE, height * rows), sharey="row")
    for axis, kind in zip(np.atleast_2d(axes)[0], KINDS, strict=True):
        axis.set_title(TITLES[kind])
    for axis in np.ravel(axes):
        axis.grid(axis="y")
    return figure, axes


def _shade(place: int, count: int) -> Any:
    """Return a colour of a scale from blue to yellow."""
    from matplotlib import colormaps

    return colormaps["viridis"](place / max(count - 1, 1) * 0.92) if count > 1 else INK


def _legend(figure: Figure, axis: Axes) -> None:
    handles, labels = axis.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=min(len(labels), 6))
