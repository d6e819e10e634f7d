"""Draw the figures of Peters, Niculae and Martins (2019) for your models, as PDF and PNG.

    python -m tools.papers.figures attention run/mine --source "ein kleines haus" --output attention
    python -m tools.papers.figures forced run/mine --source "ein kleines haus" \\
        --target "a small house" --output forced
    python -m tools.papers.figures sweep run/mt/sweep --measure bleu --output sweep
    python -m tools.papers.figures time run/softmax run/entmax15 --names softmax 1.5-entmax \\
        --output time
    python -m tools.papers.figures curves run/softmax run/entmax15 --output curves
    python -m tools.papers.figures mappings --output mappings
    python -m tools.papers.figures sparsity run/softmax run/entmax15 --source val.de \\
        --target val.en --output sparsity

attention   attention weights; white is exactly zero (Figure 5). Without --target, along the model's
            own output.
forced      the possible tokens at each position of a target, with their probabilities; positions
            with only one are joined (Figure 2)
sweep       a measure over attention alpha and over output alpha (Figure 4), from folders of
            `tools.papers.tables`, run folders, or a CSV file with columns attention_alpha,
            output_alpha and the measure
time        a development measure over training time (Figure 6), from run folders; runs of the same
            name share a colour
curves      all measurements of training over updates, from run folders
mappings    the mappings for two and three classes (Figure 3; Martins and Astudillo 2016, Figures 1
            and 2)
sparsity    counts at each decoding step the source positions of nonzero attention and the tokens of
            nonzero probability, along the targets and along the model's own outputs (Table 3);
            prints the means, and writes OUTPUT.json, OUTPUT.md and the distributions. The frequency
            rank of a token is its place in the vocabulary.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from onmt_entmax.cli.ending import argument_parser, run_script
from onmt_entmax.files import write_files
from onmt_entmax.rules import number, whole
from onmt_entmax.sparse import entmax
from tools.papers import sparsity
from tools.papers.figure_runs import draw_curves, draw_sweep, draw_time
from tools.papers.figure_sentence import draw_attention, draw_forced, sentence
from tools.papers.pictures import (
    INK,
    PAGE,
    SOFT,
    Axes,
    Figure,
    names_of,
    prepare,
    pyplot,
    stem_of,
    write,
)

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

# --- mappings --------------------------------------------------------------------------------


def draw_mappings(alphas: Sequence[float]) -> Figure:
    """Draw the curves of `alphas` in two dimensions, and softmax and sparsemax in three.

    Dots mark saturation, at t = 1 / (alpha - 1); dashed lines divide regions by size of support.
    """
    figure, (curves, *surfaces) = pyplot.subplots(1, 3, figsize=(PAGE, 2.2))
    _draw_mappings_of_two(curves, alphas)
    for axis, alpha in zip(surfaces, NAMED, strict=True):
        filled = _draw_mapping_of_three(axis, alpha)
    ticks = [0, 0.2, 0.4, 0.6, 0.8, 1]
    figure.colorbar(filled, ax=surfaces, label="first probability", ticks=ticks)
    return figure


def _draw_mappings_of_two(axis: Axes, alphas: Sequence[float]) -> None:
    """Draw the first probability of two classes with scores (t, 0), a curve for each alpha."""
    t = torch.linspace(-4.5, 4.5, 901).double()
    for number_of_curve, alpha in enumerate(alphas):
        first = entmax(torch.stack([t, torch.zeros_like(t)], 1), alpha)[:, 0]
        colour = f"C{number_of_curve}"
        axis.plot(t, first, color=colour, label=NAMED.get(alpha, f"alpha {alpha:g}"))
        saturation = 1 / (alpha - 1) if alpha > 1 else float("inf")
        if saturation <= 4.5:
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
            colour = "white" if x > 2 else INK
            axis.text(x, y, str(support), ha="center", va="center", color=colour)
    axis.set(title=f"{NAMED[alpha]}, scores (t1, t2, 0)", xlabel="t1", ylabel="t2")
    axis.set_aspect("equal")
    return filled


# --- the command -----------------------------------------------------------------------------


def draw(options: argparse.Namespace) -> Figure:
    """Draw the figure that the command line names; `sparsity` also writes its tables."""
    if options.command == "mappings":
        return draw_mappings(options.alphas)
    if options.command == "sweep":
        return draw_sweep(options.models, options.measure, options.label, options.fixed)
    if options.command in ("attention", "forced"):
        drawn = sentence(options.models, options.source, options.target, options.transforms)
        listed = {branch.token for node in drawn.nodes for branch in node.branches}
        prepare([*drawn.source, *drawn.target, *(drawn.names[token] for token in listed)])
        return {"attention": draw_attention, "forced": draw_forced}[options.command](drawn)
    names = names_of(options, different=options.command != "time" or not options.names)
    prepare(names)
    if options.command == "time":
        return draw_time(options.models, names, options.measure, options.label)
    if options.command == "curves":
        return draw_curves(options.models, names)
    keys = ("source", "target", "transforms", "limit", "beam_size", "batch_size")
    arguments = {key: getattr(options, key) for key in keys}
    figures = {
        name: sparsity.measure(folder, **arguments)
        for name, folder in zip(names, options.models, strict=True)
    }
    print(sparsity.table3(figures))
    stem = stem_of(options.output)
    texts = {".json": json.dumps(figures, indent=1) + "\n", ".md": sparsity.markdown(figures)}
    write_files({Path(f"{stem}{ending}"): text for ending, text in texts.items()})
    return sparsity.draw(figures)


def compare_arguments(add: Any) -> None:
    """Add the arguments of a command that compares models on parallel text."""
    add("models", nargs="+", type=Path, metavar="MODEL", help="run or model folders to compare")
    add("--names", nargs="+", metavar="NAME", help="names of the models (default: folder names)")
    add("--source", type=Path, required=True, metavar="FILE")
    add("--target", type=Path, required=True, metavar="FILE")
    add("--transforms", nargs="*", help="transforms of both files, instead of training's subwords")
    add("--limit", type=whole(1, 10**9), metavar="N", help="read the first N sentences")


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argument_parser(__doc__)
    commands = parser.add_subparsers(required=True, dest="command")
    alpha: Any = number(1, 10**6)
    for name in ("attention", "forced", "sweep", "time", "curves", "mappings", "sparsity"):
        add: Any = commands.add_parser(name).add_argument
        if name in ("attention", "forced"):
            add("models", nargs="+", type=Path, metavar="MODEL", help="several are averaged")
            add("--source", required=True, metavar="TEXT")
            add("--target", required=name == "forced", metavar="TEXT")
            add("--transforms", nargs="*", help="of both texts, instead of training's subwords")
        elif name == "sparsity":
            compare_arguments(add)
            add("--beam_size", type=whole(1, 10_000), default=5, metavar="N")
            add("--batch_size", type=whole(1, 10**7), default=64, metavar="N")
        elif name == "mappings":
            add("--alphas", nargs="+", type=alpha, default=[1, 1.25, 1.5, 2, 4], metavar="ALPHA")
        else:
            add("models", nargs="+", type=Path, metavar="RUN", help="folders (sweep: or CSV files)")
        if name in ("time", "curves"):
            add("--names", nargs="+", metavar="NAME", help="of the runs (default: folder names)")
        if name in ("sweep", "time"):
            add("--measure", help="such as bleu, token_accuracy (default: the first found)")
            add("--label", help="label of the vertical axis")
        if name == "sweep":
            add("--fixed", type=alpha, default=1.5, help="value of the other alpha (default 1.5)")
        add("--output", type=Path, required=True, help="path without .pdf and .png")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    """Draw a figure; return the exit status."""
    options = parse_arguments(arguments)
    prepare()
    print(write(draw(options), options.output))
    return 0


if __name__ == "__main__":
    run_script(main)
