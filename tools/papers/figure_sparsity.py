"""Tables and figure of the nonzeros that `sparsity.py` counts (Peters et al. 2019, Table 3)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from onmt_entmax.errors import counted
from onmt_entmax.files import write_files
from tools.papers.markdown import markdown_table
from tools.papers.pictures import PAGE, Axes, Figure, legend_above, plain_numbers, pyplot
from tools.papers.sparsity import LAST_POSITION, QUANTILES

# Modes and sides of what `sparsity.measure` returns, and what they are.
MODES = {"forced": "along the references", "predicted": "along the models' own outputs"}
SIDES = {"attention": "attended positions", "output": "possible tokens"}
WIDE = 50  # axes with larger counts are logarithmic
FEW = 30  # a mean over fewer steps is not drawn

# --- tables ----------------------------------------------------------------------------------


def write_tables(figures: Mapping[str, Any], stem: Path) -> None:
    """Write all figures as STEM.json, and the tables as STEM.md.

    Args:
        figures: of `sparsity.measure`, by model.
        stem: path without ending.
    """
    texts = {".json": json.dumps(figures, indent=1) + "\n", ".md": markdown(figures)}
    write_files({Path(f"{stem}{ending}"): text for ending, text in texts.items()})


def number(value: float) -> str:
    """Format a count or mean."""
    return f"{value:,.0f}" if isinstance(value, int) or value >= 1000 else f"{value:.2f}"


def table3(figures: Mapping[str, Any]) -> str:
    """Return mean nonzeros a step, as in the paper's Table 3, and the share of steps with one."""
    head = ["model"]
    for mode in MODES:
        for side in ("# attended", "# target tokens"):
            head += [f"{side}, {mode}", "just one"]
    rows = []
    for name, model in figures.items():
        cells = [model[mode][side] for mode in MODES for side in SIDES]
        texts = [(number(cell["mean"]), f"{cell['share_of_one']:.1%}") for cell in cells]
        rows.append([name, *(text for pair in texts for text in pair)])
    return markdown_table(head, rows)


def markdown(figures: Mapping[str, Any]) -> str:
    """Return all tables."""
    sentences = counted(next(iter(figures.values()))["sentences"], "sentence")
    modes = "; ".join(f"*{mode}*: {meaning}" for mode, meaning in MODES.items())
    parts = ["# Nonzeros per step", f"{sentences}. {modes} (beam search).", table3(figures)]
    for mode, meaning in MODES.items():
        for side in SIDES:
            measured = {name: model[mode][side] for name, model in figures.items()}
            parts += [
                f"## {side.capitalize()}, {meaning}",
                _quantile_table(measured),
                _mean_table("rank of the token", "by_rank", measured),
                _mean_table("position", "by_position", measured),
            ]
    return "\n\n".join(parts) + "\n"


def _quantile_table(measured: Mapping[str, Any]) -> str:
    """Return a table of quantiles of counts; `measured` has summaries by model."""
    head = ["model", "steps", *(f"{quantile} %" for quantile in QUANTILES), "most"]
    rows = []
    for name, summary in measured.items():
        quantiles = [f"{value:,g}" for value in summary["quantiles"].values()]
        rows.append([name, str(summary["steps"]), *quantiles, number(summary["most"])])
    return markdown_table(head, rows)


def _mean_table(title: str, key: str, measured: Mapping[str, Any]) -> str:
    """Return a table of means by rank or position, a column for each model."""
    rows = []
    groups = dict.fromkeys(group for summary in measured.values() for group in summary[key])
    for group in groups:
        means = [summary[key].get(group, {}).get("mean") for summary in measured.values()]
        rows.append([group, *("" if mean is None else number(mean) for mean in means)])
    return markdown_table([title, *measured], rows)


# --- the figure ------------------------------------------------------------------------------


def draw_sparsity(figures: Mapping[str, Any]) -> Figure:
    """Draw forced decoding: distribution, means by position and by frequency.

    The upper row is attention, the lower row output.
    """
    figure, axes = pyplot.subplots(2, 3, figsize=(PAGE, 3.7))
    for line, (side, noun) in zip(axes, SIDES.items(), strict=True):
        measured = {name: model["forced"][side] for name, model in figures.items()}
        _draw_row(line, measured)
        line[0].set_xlabel(noun)
        line[0].set_ylabel("share of steps with\nat most this many")
        line[1].set_ylabel(f"{noun},\nmean")
        wide = any(summary["most"] > WIDE for summary in measured.values())
        line[0].set_xscale("log" if wide else "linear")
        for axis in line[1:]:
            axis.set_yscale("log" if wide else "linear")
            axis.set_ylim(bottom=0.9 if wide else 0)
            axis.grid(axis="y")
        for axis in line:
            plain_numbers(axis)
    axes[1, 1].set_xlabel("position in the target")
    axes[1, 2].set_xlabel("frequency rank of the target token")
    legend_above(figure, axes[0, 0])
    return figure


def _draw_row(axes: Sequence[Axes], measured: Mapping[str, Any]) -> None:
    """Draw the three panels of attention or output; `measured` has summaries by model."""
    distribution, by_position, by_rank = axes
    most = max(summary["most"] for summary in measured.values())
    ranks = _drawn_ranks(list(measured.values()))
    for name, summary in measured.items():
        points = [(int(count), share) for count, share in summary["at_most"].items()]
        if points[0][0] != 1:
            points.insert(0, (1, 0.0))
        # Every line goes on to the largest count of all models.
        distribution.step(*zip(*points, (most, 1.0), strict=True), where="post", label=name)
        means = [
            (int(position), cell["mean"])
            for position, cell in summary["by_position"].items()
            if cell["steps"] >= FEW and int(position) < LAST_POSITION
        ]
        by_position.plot(*zip(*means, strict=True) if means else ([], []))
        places = [place for place, rank in enumerate(ranks) if rank in summary["by_rank"]]
        values = [summary["by_rank"][ranks[place]]["mean"] for place in places]
        by_rank.plot(places, values, "o")
    distribution.set_ylim(0, 1.03)
    labels = [rank.replace("-", "–") for rank in ranks]
    by_rank.set_xticks(range(len(ranks)), labels, rotation=30, ha="right", rotation_mode="anchor")
    by_rank.set_xlim(-0.5, max(len(ranks), 1) - 0.5)


def _drawn_ranks(summaries: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the frequency classes of which a model has enough steps."""
    ranks = dict.fromkeys(rank for summary in summaries for rank in summary["by_rank"])
    return [
        rank
        for rank in ranks
        if any(summary["by_rank"].get(rank, {}).get("steps", 0) >= FEW for summary in summaries)
    ]
