"""Draw the figures of Peters, Niculae and Martins (2019) for your models, as PDF and PNG.

    onmt-entmax figures attention run/mine --source "ein kleines haus" --output attention
    onmt-entmax figures forced run/mine --source "ein kleines haus" --target "a small house" \\
        --output forced
    onmt-entmax figures sweep run/mt/sweep --measure bleu --output sweep
    onmt-entmax figures time run/softmax run/entmax15 --names softmax 1.5-entmax --output time
    onmt-entmax figures curves run/softmax run/entmax15 --output curves
    onmt-entmax figures mappings --output mappings

attention   attention weights; white is exactly zero (Figure 5). Without --target, along the model's
            own output.
forced      the possible tokens at each position of a target, with their probabilities; positions
            with only one are joined (Figure 2)
sweep       a measure over attention alpha and over output alpha (Figure 4), from folders of
            `onmt-entmax experiment`, run folders, or a CSV file with columns attention_alpha,
            output_alpha and the measure
time        a development measure over training time (Figure 6), from run folders; runs of the same
            name share a colour
curves      all measurements of training over updates, from run folders

Needs matplotlib.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from onmt_entmax.cli.ending import argument_parser, following, warn
from onmt_entmax.errors import UserError, counted
from onmt_entmax.figures.curves import draw_curves
from onmt_entmax.figures.mappings import draw_mappings
from onmt_entmax.figures.runs import draw_sweep, draw_time, read_curves, read_points
from onmt_entmax.figures.sentence import draw_attention, draw_forced, sentence
from onmt_entmax.figures.style import output_stem, prepare, write_figure
from onmt_entmax.rules import number


def of_sentence(options: argparse.Namespace) -> str:
    """Draw `attention` or `forced`; return the paths."""
    prepare()  # fail before the work if matplotlib is missing
    drawn = sentence(options.models, options.source, options.target, options.transforms)
    prepare(drawn.texts())
    draw = {"attention": draw_attention, "forced": draw_forced}[options.command]
    paths = write_figure(draw(drawn), output_stem(options.output))
    for message in drawn.warnings:
        warn(message)
    return paths


def of_sweep(options: argparse.Namespace) -> str:
    """Draw `sweep`; return the paths."""
    prepare([options.label or ""])
    points, measure = read_points(options.paths, options.measure)
    figure = draw_sweep(points, options.label or measure, options.fixed)
    return write_figure(figure, output_stem(options.output))


def run_names(options: argparse.Namespace) -> list[str]:
    """Return the names of runs, which need not differ; by default their paths.

    Raises:
        UserError: they are not as many as the runs.
    """
    names = options.names or [str(path) for path in options.paths]
    if len(names) != len(options.paths):
        raise UserError(
            f"--names: {counted(len(names), 'name')} for {counted(len(options.paths), 'run')}"
        )
    return list(names)


def of_time(options: argparse.Namespace) -> str:
    """Draw `time`; return the paths."""
    names = run_names(options)
    prepare([*names, options.label or ""])
    curves, measure = read_curves(options.paths, names, options.measure)
    return write_figure(draw_time(curves, options.label or measure), output_stem(options.output))


def of_curves(options: argparse.Namespace) -> str:
    """Draw `curves`; return the paths."""
    names = run_names(options)
    prepare(names)
    return write_figure(draw_curves(options.paths, names), output_stem(options.output))


def of_mappings(options: argparse.Namespace) -> str:
    """Draw `mappings`; return the paths."""
    prepare()
    return write_figure(draw_mappings(options.alphas), output_stem(options.output))


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argument_parser(__doc__)
    commands = parser.add_subparsers(required=True, dest="command")
    for name in ("attention", "forced"):
        add = commands.add_parser(name).add_argument
        add(
            "models",
            nargs="+",
            type=Path,
            metavar="MODEL",
            help="model folders; several are averaged",
        )
        add("--source", required=True, metavar="TEXT")
        add("--target", required=name == "forced", metavar="TEXT")
        add("--transforms", nargs="*", help="of both texts, instead of training's subwords")
        add("--output", type=Path, required=True, help="path without .pdf and .png")
    add = commands.add_parser("sweep").add_argument
    add("paths", nargs="+", type=Path, metavar="PATH", help="folders, or CSV files")
    add("--measure", help="such as bleu, accuracy, token_accuracy (default: the first found)")
    add("--label", help="label of the vertical axis")
    alpha = following(number(1, 10**6))
    add("--fixed", type=alpha, default=1.5, help="value of the other alpha (default 1.5)")
    add("--output", type=Path, required=True, help="path without .pdf and .png")
    for name in ("time", "curves"):
        add = commands.add_parser(name).add_argument
        add("paths", nargs="+", type=Path, metavar="RUN", help="run folders")
        add("--names", nargs="+", metavar="NAME", help="names of the runs (default: their paths)")
        if name == "time":
            add("--measure", help="such as bleu, token_accuracy (default: the first found)")
            add("--label", help="label of the vertical axis")
        add("--output", type=Path, required=True, help="path without .pdf and .png")
    add = commands.add_parser("mappings").add_argument
    add("--alphas", nargs="+", type=alpha, default=[1, 1.25, 1.5, 2, 4], metavar="ALPHA")
    add("--output", type=Path, required=True, help="path without .pdf and .png")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    """Draw a figure; return the exit status."""
    options = parse_arguments(arguments)
    own = {"sweep": of_sweep, "time": of_time, "curves": of_curves, "mappings": of_mappings}
    print(own.get(options.command, of_sentence)(options))
    return 0
