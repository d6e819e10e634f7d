"""Figures of Peters, Niculae and Martins (2019), for models of one's own, as PDF and PNG.

    python tools/figures.py attention run/mine --source "ein kleines haus" --output attention
    python tools/figures.py forced run/mine --source "ein kleines haus" --target "a small house" \\
        --output forced
    python tools/figures.py sweep run/mt/sweep --measure bleu --output sweep
    python tools/figures.py time run/softmax run/entmax15 --names softmax 1.5-entmax --output time

attention   which source words the model looks at as it writes each target word; white is exactly
            zero (Figure 5). Without --target it draws the model's own output.
forced      at each word of a target all words that the model considers possible, with their
            probabilities; words that follow for certain are joined (Figure 2)
sweep       a measure over attention alpha and over output alpha (Figure 4), of the figures.json
            files in folders that tools/experiment.py made, of run folders, or of a CSV file with
            columns attention_alpha, output_alpha and the measure
time        a measure of the development set over the seconds of training (Figure 6), of the
            metrics.jsonl of runs; runs with the same name share a colour

Needs matplotlib: pip install -e ".[plot]"
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from onmt_entmax.cli.ending import argument_parser
from onmt_entmax.errors import UserError
from onmt_entmax.figures.runs import draw_sweep, draw_time, read_curves, read_points
from onmt_entmax.figures.sentence import draw_attention, draw_forced, sentence
from onmt_entmax.figures.style import output_stem, prepare, write_figure


def of_sentence(options: argparse.Namespace) -> str:
    """The commands `attention` and `forced`; returns what was written."""
    prepare()  # matplotlib is missed before the work, not after
    drawn = sentence(options.models, options.source, options.target, options.transforms)
    prepare(drawn.texts())
    draw = {"attention": draw_attention, "forced": draw_forced}[options.command]
    return write_figure(draw(drawn), output_stem(options.output))


def of_sweep(options: argparse.Namespace) -> str:
    """The command `sweep`; returns what was written."""
    prepare()
    points, measure = read_points(options.paths, options.measure)
    figure = draw_sweep(points, options.label or measure, options.fixed)
    return write_figure(figure, output_stem(options.output))


def of_time(options: argparse.Namespace) -> str:
    """The command `time`; returns what was written."""
    names = options.names or [path.name for path in options.paths]
    if len(names) != len(options.paths):
        raise UserError(f"--names: {len(names)} names for {len(options.paths)} runs")
    prepare(names)
    curves, measure = read_curves(options.paths, names, options.measure)
    return write_figure(draw_time(curves, options.label or measure), output_stem(options.output))


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Reads the command line; ends the program with status 2 where it is wrong."""
    parser = argument_parser(__doc__)
    commands = parser.add_subparsers(required=True, dest="command")
    for name in ("attention", "forced"):
        add = commands.add_parser(name).add_argument
        add("models", nargs="+", type=Path, metavar="MODEL", help="several are an ensemble")
        add("--source", required=True, metavar="TEXT")
        add("--target", required=name == "forced", metavar="TEXT")
        add("--transforms", nargs="*", default=[], help="transforms of OpenNMT-py, for both texts")
        add("--output", type=Path, required=True, help="written with .pdf and .png")
    add = commands.add_parser("sweep").add_argument
    add("paths", nargs="+", type=Path, metavar="PATH", help="folders, or CSV files")
    add("--measure", help="such as bleu, accuracy, token_accuracy; else the first that is there")
    add("--label", help="label of the vertical axis")
    add("--fixed", type=float, default=1.5, help="the other alpha meanwhile (default 1.5)")
    add("--output", type=Path, required=True, help="written with .pdf and .png")
    add = commands.add_parser("time").add_argument
    add("paths", nargs="+", type=Path, metavar="RUN", help="run folders")
    add("--names", nargs="+", metavar="NAME", help="names of the runs; else the folders'")
    add("--measure", help="such as bleu, exact_match, token_accuracy; else the first of these")
    add("--label", help="label of the vertical axis")
    add("--output", type=Path, required=True, help="written with .pdf and .png")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    """Draws; an error of the user's is one line on the standard error and status 2."""
    options = parse_arguments(arguments)
    draw = {"sweep": of_sweep, "time": of_time}.get(options.command, of_sentence)
    print(draw(options))
    return 0
