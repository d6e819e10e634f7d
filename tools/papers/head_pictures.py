"""Pictures of attention heads, for `heads.py`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from onmt_entmax.nn.transformer import KINDS
from tools.papers.figure_runs import read_metrics
from tools.papers.figure_sentence import heat_map, heat_scale
from tools.papers.head_measures import BINS, Floats
from tools.papers.pictures import INK, PAGE, Figure, legend_above, pyplot

TITLES = {
    "encoder": "encoder self-attention",
    "decoder": "decoder self-attention",
    "context": "context attention",
}


class Shown(NamedTuple):
    """A head's attention in one sentence, with a title."""

    title: str
    weights: Floats
    tokens: Sequence[str]


def panels(height: float, rows: int = 1) -> tuple[Figure, Any]:
    """Return a figure with a panel `(rows, kinds)` for each kind of attention."""
    figure, axes = pyplot.subplots(
        rows, len(KINDS), figsize=(PAGE, height * rows), sharey="row", squeeze=False
    )
    for axis, kind in zip(axes[0], KINDS, strict=True):
        axis.set_title(TITLES[kind])
    for axis in axes.flat:
        axis.grid(axis="y")
    return figure, axes


def shade(index: int, count: int) -> Any:
    """Return a colour of a scale from blue to yellow."""
    return pyplot.get_cmap("viridis")(index / max(count - 1, 1) * 0.92) if count > 1 else INK


def draw_trajectories(steps: Sequence[int], alphas: Mapping[str, Floats]) -> Figure:
    """Draw learned alphas `(steps, layers, heads)` by kind over training (Figure 2)."""
    figure, (axes,) = panels(1.9)
    for axis, kind in zip(axes, KINDS, strict=True):
        axis.set_ylim(1, 2)
        axis.set_xlabel("training steps")
        layers = alphas[kind].shape[1] if kind in alphas else 0
        for layer in range(layers):
            colour = shade(layer, layers)
            lines = axis.plot(steps, alphas[kind][:, layer], color=colour, linewidth=0.8)
            lines[0].set_label(f"layer {layer + 1}")
    axes[0].set_ylabel("alpha")
    legend_above(figure, axes[KINDS.index(next(iter(alphas)))])
    return figure


def draw_comparison(models: Mapping[str, Mapping[str, Any]], what: str) -> Figure:
    """Draw all models in a panel for each kind of attention.

    Args:
        models: measures by name.
        what: `alphas` (histograms over heads, Figures 3 and 11), `densities` (over heads and
            sentences, Figures 4 and 12) or `divergence` (by layer, Figures 6 and 13).
    """
    figure, (axes,) = panels(1.8)
    for axis, kind in zip(axes, KINDS, strict=True):
        for name, model in models.items():
            measures = model[kind]
            if what == "alphas":
                alphas = np.ravel(measures["alpha"]).clip(1, 2)
                axis.hist(alphas, np.linspace(1, 2, 21), alpha=0.6, label=name)
                axis.yaxis.get_major_locator().set_params(integer=True)
            elif what == "densities":
                axis.stairs(measures["density_histogram"], np.linspace(0, 1, BINS + 1), label=name)
            else:
                layers = range(1, len(measures["divergence"]) + 1)
                axis.plot(layers, measures["divergence"], marker="o", label=name)
                axis.set_xticks(layers)
        limits = {"alphas": (1, 2), "densities": (0, 1.01)}
        axis.set(xlabel={"alphas": "alpha", "densities": "density", "divergence": "layer"}[what])
        axis.set_xlim(limits.get(what))
    axes[0].set_ylim(bottom=0)  # of all panels, which share it
    labels = {"alphas": "heads", "densities": "share of heads and sentences"}
    axes[0].set_ylabel(labels.get(what, "divergence of heads"))
    legend_above(figure, axes[0])
    return figure


def draw_layers(models: Mapping[str, Mapping[str, Any]]) -> Figure:
    """Draw the density of the heads of each layer, sorted (Figures 5 and 14); a row a model."""
    figure, grid = panels(1.35, len(models))
    for axes, (name, model) in zip(grid, models.items(), strict=True):
        for axis, kind in zip(axes, KINDS, strict=True):
            density = np.sort(np.array(model[kind]["density"]), axis=1)
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


def draw_heads(shown: Sequence[Shown], across: int) -> Figure:
    """Draw attention of heads, at most `across` side by side (Figures 7 to 10)."""
    across = min(len(shown), across)
    rows = -(-len(shown) // across)
    longest = max(len(example.tokens) for example in shown)
    cell = min(0.17, (PAGE / across - 0.75) / longest)
    size = (PAGE, (cell * longest + 0.95) * rows)
    figure, axes = pyplot.subplots(rows, across, figsize=size, squeeze=False)
    for axis, example in zip(axes.flat, shown, strict=False):  # the last panels may stay empty
        image = heat_map(axis, example.weights, example.tokens, example.tokens, cell)
        axis.set_title(example.title, fontsize=7)
    for axis in axes.flat[len(shown) :]:
        axis.set_visible(False)
    heat_scale(figure, image, axes)
    return figure


def trajectories(folder: Path) -> tuple[list[int], dict[str, Any]] | None:
    """Return steps and learned alphas by kind from a run folder; None if it has none."""
    runs = [run for run in (folder, folder.parent) if (run / "metrics.jsonl").is_file()]
    rows = [row for run in runs[:1] for row in read_metrics(run) if row["kind"] == "alpha"]
    kinds = [kind for kind in KINDS if rows and kind in rows[0]]
    alphas = {kind: np.array([row[kind] for row in rows]) for kind in kinds}
    return ([row["step"] for row in rows], alphas) if rows else None
