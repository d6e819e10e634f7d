"""The figure of the nonzeros that `sparsity.py` counts (Peters et al. 2019, Table 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tools.papers.picture_axes import legend_above, plain_numbers
from tools.papers.pictures import PAGE
from tools.papers.plotting import Axes, Figure, pyplot
from tools.papers.sparsity import CLASSES, LAST_POSITION, Figures, GroupMean, Summary
from tools.papers.sparsity_tables import SIDES

LARGEST_LINEAR = 50  # axes with larger counts are logarithmic
MIN_STEPS = 30  # means of fewer steps are not drawn, since they are noise


def draw_sparsity(figures: Mapping[str, Figures]) -> Figure:
    """Draw forced decoding: distribution of counts, means by position and by frequency.

    The upper row is attention, the lower row output.

    Args:
        figures: figures by model.
    """
    figure, axes = pyplot.subplots(2, 3, figsize=(PAGE, 3.7))
    for row, (side, noun) in zip(axes, SIDES.items(), strict=True):
        summaries: dict[str, Summary] = {
            name: model["forced"][side] for name, model in figures.items()
        }
        _draw_row(row, summaries, noun)
    axes[1, 1].set_xlabel("position in the target")
    axes[1, 2].set_xlabel("frequency rank of the target token")
    legend_above(figure, axes[0, 0])
    return figure


def _draw_row(axes: Sequence[Axes], summaries: Mapping[str, Summary], noun: str) -> None:
    """Draw the three panels of attention or output.

    Args:
        axes: axes of the panels.
        summaries: summaries of the counts, by model.
        noun: what is counted.
    """
    distribution, by_position, by_rank = axes
    largest = max(summary["most"] for summary in summaries.values())
    _draw_distributions(distribution, summaries, largest)
    _draw_positions(by_position, summaries)
    draw_ranks(by_rank, [summary["by_rank"] for summary in summaries.values()])
    distribution.set_xlabel(noun)
    distribution.set_ylabel("share of steps with\nat most this many")
    by_position.set_ylabel(f"{noun},\nmean")
    logarithmic = largest > LARGEST_LINEAR
    scale = "log" if logarithmic else "linear"
    distribution.set_xscale(scale)
    for axis in (by_position, by_rank):
        axis.set_yscale(scale)
        axis.set_ylim(bottom=0.9 if logarithmic else 0)
        axis.grid(axis="y")
    for axis in axes:
        plain_numbers(axis)


def _draw_distributions(axis: Axes, summaries: Mapping[str, Summary], largest: int) -> None:
    """Draw for each model the share of its steps with at most n nonzeros, over n.

    All lines start at 1 and go on to the largest count of all models.
    """
    for name, summary in summaries.items():
        shares = {int(count): share for count, share in summary["at_most"].items()}
        if 1 not in shares:
            shares = {1: 0.0, **shares}
        axis.step([*shares, largest], [*shares.values(), 1.0], where="post", label=name)
    axis.set_ylim(0, 1.03)


def _draw_positions(axis: Axes, summaries: Mapping[str, Summary]) -> None:
    """Draw for each model the mean at each position of the target.

    `LAST_POSITION` is left out: it stands for all later positions, too.
    """
    for summary in summaries.values():
        means = {
            int(position): group["mean"]
            for position, group in summary["by_position"].items()
            if group["steps"] >= MIN_STEPS and int(position) < LAST_POSITION
        }
        axis.plot(list(means), list(means.values()))


def draw_ranks(axis: Axes, groups_of_models: Sequence[Mapping[str, GroupMean]]) -> None:
    """Draw for each model the mean of each frequency class with enough steps.

    Args:
        axis: axis of the panel.
        groups_of_models: means by frequency class, for each model.
    """
    means_of_models = [
        {name: group["mean"] for name, group in groups.items() if group["steps"] >= MIN_STEPS}
        for groups in groups_of_models
    ]
    classes = [name for name in CLASSES if any(name in means for means in means_of_models)]
    for means in means_of_models:
        points = {x: means[name] for x, name in enumerate(classes) if name in means}
        axis.plot(list(points), list(points.values()), "o")
    labels = [name.replace("-", "–") for name in classes]
    axis.set_xticks(range(len(classes)), labels, rotation=30, ha="right", rotation_mode="anchor")
    axis.set_xlim(-0.5, max(len(classes), 1) - 0.5)
