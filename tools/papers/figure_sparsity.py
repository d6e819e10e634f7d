"""The figure of the nonzeros that `sparsity.py` counts (Peters et al. 2019, Table 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tools.papers.pictures import PAGE, Axes, Figure, legend_above, plain_numbers, pyplot
from tools.papers.sparsity import LAST_POSITION
from tools.papers.sparsity_tables import SIDES

WIDE = 50  # axes with larger counts are logarithmic
FEW = 30  # steps that a mean by position needs, and a rank of one model at least, to be drawn


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
        _draw_distribution(distribution, name, summary, most)
        means = {
            int(position): cell["mean"]
            for position, cell in summary["by_position"].items()
            if cell["steps"] >= FEW and int(position) < LAST_POSITION
        }
        by_position.plot(list(means), list(means.values()))
        places = [place for place, rank in enumerate(ranks) if rank in summary["by_rank"]]
        values = [summary["by_rank"][ranks[place]]["mean"] for place in places]
        by_rank.plot(places, values, "o")
    distribution.set_ylim(0, 1.03)
    labels = [rank.replace("-", "–") for rank in ranks]
    by_rank.set_xticks(range(len(ranks)), labels, rotation=30, ha="right", rotation_mode="anchor")
    by_rank.set_xlim(-0.5, max(len(ranks), 1) - 0.5)


def _draw_distribution(axis: Axes, name: str, summary: Mapping[str, Any], most: int) -> None:
    """Draw the share of the steps that have at most so many nonzeros.

    Args:
        axis: to draw on.
        name: of the model.
        summary: of its counts.
        most: largest count of all models, to which every line goes on.
    """
    shares = {int(count): share for count, share in summary["at_most"].items()}
    if 1 not in shares:
        shares = {1: 0.0, **shares}
    axis.step([*shares, most], [*shares.values(), 1.0], where="post", label=name)


def _drawn_ranks(summaries: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the frequency classes of which a model has enough steps."""
    ranks = dict.fromkeys(rank for summary in summaries for rank in summary["by_rank"])
    return [
        rank
        for rank in ranks
        if any(summary["by_rank"].get(rank, {}).get("steps", 0) >= FEW for summary in summaries)
    ]
