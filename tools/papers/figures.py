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

`attention -h`, `forced -h` and so on describe the figures.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from onmt_entmax.cli.ending import argument_parser, run_script
from onmt_entmax.rules import number, whole
from tools.papers import sparsity
from tools.papers.arguments import AddArgument, add_comparison, names_of, text_of
from tools.papers.figure_attention import draw_attention
from tools.papers.figure_curves import draw_curves
from tools.papers.figure_forced import draw_forced
from tools.papers.figure_mappings import draw_mappings
from tools.papers.figure_sentence import Sentence, sentence
from tools.papers.figure_sparsity import draw_sparsity
from tools.papers.figure_sweep import draw_sweep
from tools.papers.figure_time import draw_time
from tools.papers.pictures import set_style, stem_of, write
from tools.papers.plotting import Figure
from tools.papers.sparsity_tables import table3, write_tables
from tools.papers.subcommands import add_subcommand

ATTENTION = """Draw attention weights as a heat map, in which white is exactly zero (Figure 5).

Without --target, they are those along the model's own output.
"""

FORCED = """Draw the possible tokens at each position of a target, with probabilities (Figure 2).

Positions with only one possible token are joined.
"""

SWEEP = """Draw a measure over attention alpha and over output alpha (Figure 4).

RUN is a folder of `tools.papers.tables`, a run folder, or a CSV file with columns attention_alpha,
output_alpha and the measure.
"""

TIME = """Draw a development measure over training time (Figure 6).

Runs of the same name share a colour.
"""

CURVES = """Draw all measurements of training over updates."""

MAPPINGS = """Draw the mappings for two and three classes (Figure 3).

They are also Figures 1 and 2 of Martins and Astudillo (2016).
"""

SPARSITY = """Count and draw nonzeros of attention and output at each decoding step (Table 3).

These are the source positions of nonzero attention and the tokens of nonzero probability, along the
targets and along the model's own outputs. Prints the means, and writes OUTPUT.json, OUTPUT.md and
the distributions. The frequency rank of a token is its place in the vocabulary.
"""

ALPHA = number(1, 10**6)

# --- figures of a sentence -------------------------------------------------------------------


def _sentence_arguments(add: AddArgument, *, target_required: bool) -> None:
    """Add the arguments of `attention` and `forced`."""
    add("models", nargs="+", type=Path, metavar="MODEL", help="several are averaged")
    add("--source", required=True, metavar="TEXT", help="the sentence that the model reads")
    add("--target", required=target_required, metavar="TEXT", help="the output to follow")
    add("--transforms", nargs="*", help="of both texts, instead of training's subwords")


def _sentence(options: argparse.Namespace) -> Sentence:
    """Run the models along the target, and set fonts that have all tokens of the figure."""
    drawn = sentence(options.models, options.source, options.target, options.transforms)
    listed = {branch.token for node in drawn.nodes for branch in node.branches}
    set_style([*drawn.source, *drawn.target, *(drawn.names[token] for token in listed)])
    return drawn


# --- figures of runs -------------------------------------------------------------------------


def _sweep_arguments(add: AddArgument) -> None:
    """Add the arguments of `sweep`."""
    add("results", nargs="+", type=Path, metavar="RUN", help="folders or CSV files")
    _measure_arguments(add)
    add("--fixed", type=ALPHA, default=1.5, help="value of the other alpha (default 1.5)")


def _measure_arguments(add: AddArgument) -> None:
    """Add the arguments of figures that show one measure."""
    add("--measure", help="such as bleu, token_accuracy (default: the first found)")
    add("--label", help="label of the vertical axis")


def _run_arguments(add: AddArgument) -> None:
    """Add the arguments of `curves`, which those of `time` begin with."""
    add("runs", nargs="+", type=Path, metavar="RUN", help="folders")
    add("--names", nargs="+", metavar="NAME", help="of the runs (default: folder names)")


def _time_arguments(add: AddArgument) -> None:
    """Add the arguments of `time`."""
    _run_arguments(add)
    _measure_arguments(add)


def _time_figure(options: argparse.Namespace) -> Figure:
    """Draw the figure of `time`; runs of one name, as of several seeds, share a colour."""
    names = names_of(options.names, options.runs, may_repeat=bool(options.names))
    set_style(names)
    return draw_time(options.runs, names, options.measure, options.label)


def _curves_figure(options: argparse.Namespace) -> Figure:
    """Draw the figure of `curves`."""
    names = names_of(options.names, options.runs)
    set_style(names)
    return draw_curves(options.runs, names)


# --- other figures ---------------------------------------------------------------------------


def _mappings_arguments(add: AddArgument) -> None:
    """Add the arguments of `mappings`."""
    add(
        "--alphas",
        nargs="+",
        type=ALPHA,
        default=[1, 1.25, 1.5, 2, 4],
        metavar="ALPHA",
        help="of the curves (default: 1 1.25 1.5 2 4)",
    )


def _sparsity_arguments(add: AddArgument) -> None:
    """Add the arguments of `sparsity`."""
    add_comparison(add)
    add("--beam_size", type=whole(1, 10_000), default=5, metavar="N", help="default 5")
    add(
        "--batch_size",
        type=whole(1, 10**7),
        default=64,
        metavar="N",
        help="sentences (default 64)",
    )


def _sparsity_figure(options: argparse.Namespace) -> Figure:
    """Measure the models, print and write the tables, and draw the figure of `sparsity`."""
    names = names_of(options.names, options.models)
    stem = stem_of(options.output)  # refuses a wrong path before anything is measured
    set_style(names)
    figures = {
        name: sparsity.measure(folder, text_of(options), options.beam_size, options.batch_size)
        for name, folder in zip(names, options.models, strict=True)
    }
    print(table3(figures))
    write_tables(figures, stem)
    return draw_sparsity(figures)


# --- the command -----------------------------------------------------------------------------


class Command(NamedTuple):
    """A subcommand.

    Attributes:
        description: describes the figure in the help.
        add_arguments: adds its arguments to a parser, `--output` excepted, which all have.
        draw: returns its figure. The style is set; a figure with names or tokens sets it anew, for
            fonts that have their characters.
    """

    description: str
    add_arguments: Callable[[AddArgument], None]
    draw: Callable[[argparse.Namespace], Figure]


COMMANDS = {
    "attention": Command(
        ATTENTION,
        partial(_sentence_arguments, target_required=False),
        draw=lambda options: draw_attention(_sentence(options)),
    ),
    "forced": Command(
        FORCED,
        partial(_sentence_arguments, target_required=True),
        draw=lambda options: draw_forced(_sentence(options)),
    ),
    "sweep": Command(
        SWEEP,
        _sweep_arguments,
        draw=lambda options: draw_sweep(
            options.results, options.measure, options.label, options.fixed
        ),
    ),
    "time": Command(TIME, _time_arguments, draw=_time_figure),
    "curves": Command(CURVES, _run_arguments, draw=_curves_figure),
    "mappings": Command(
        MAPPINGS, _mappings_arguments, draw=lambda options: draw_mappings(options.alphas)
    ),
    "sparsity": Command(SPARSITY, _sparsity_arguments, draw=_sparsity_figure),
}


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argument_parser(__doc__)
    subparsers = parser.add_subparsers(required=True, dest="command")
    for name, command in COMMANDS.items():
        add: AddArgument = add_subcommand(subparsers, name, command.description).add_argument
        command.add_arguments(add)
        add("--output", type=Path, required=True, help="path without .pdf and .png")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    """Draw a figure; return the exit status."""
    options = parse_arguments(arguments)
    set_style()
    figure = COMMANDS[options.command].draw(options)
    print(write(figure, options.output))
    return 0


if __name__ == "__main__":
    run_script(main)
