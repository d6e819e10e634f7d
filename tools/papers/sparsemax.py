"""Repeat the experiments of Martins and Astudillo (2016): multi-label, and attention over pairs.

    python -m tools.papers.sparsemax multilabel config/multilabel/scene.yaml
    python -m tools.papers.sparsemax multilabel config/multilabel/scene.yaml \\
        --test run/multilabel/data/scene-test.arff
    python -m tools.papers.sparsemax nli train config/nli/sick.yaml --out run/nli/sparsemax-1
    python -m tools.papers.sparsemax nli evaluate run/nli/* --data sick/dev.tsv
    python -m tools.papers.sparsemax nli figures run/nli/softmax-1 run/nli/sparsemax-1 \\
        --data sick/dev.tsv --lines 12 40 --out run/pictures

`multilabel -h` and `nli -h` describe the two experiments.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from onmt_entmax.cli.ending import argument_parser, run_script
from onmt_entmax.errors import UserError
from onmt_entmax.rules import whole
from tools.papers import multilabel_table, nli_commands
from tools.papers.arguments import AddArgument
from tools.papers.multilabel_settings import Settings
from tools.papers.nli_settings import ATTENTION
from tools.papers.settings_file import described_keys, read_settings
from tools.papers.subcommands import add_subcommand

MULTILABEL = f"""Measure linear multi-label classifiers with several losses (section 4.2).

Nested cross-validation predicts each row of the training file by a model that was chosen and fitted
without it: outer folds measure F1, inner folds choose L2 and threshold (or scale of the scores).
With --test, all training rows choose and fit, and a test file is measured. Rows without labels are
not trained on and do not count in F1. Micro and macro F1 each have their own choices;
tools/papers/multilabel_f1.py defines them.

The folder `out` receives LOSS.json (F1, choices) and LOSS.predictions.jsonl for each loss, and
table.md, which is also printed; with --test, these names have `.test` in them. A loss whose files
are there is not fitted again. Keys of a configuration:

{described_keys(Settings)}
"""

NLI = """Train, evaluate and draw attention classifiers of sentence pairs (section 4.3).

A file of pairs is SNLI's if its name ends in .jsonl, else a table with the columns sentence_A,
sentence_B and entailment_judgment, as SICK's.
"""

TRAIN = """Train a classifier; the best epoch so far is in --out."""

EVALUATE = """Print the accuracy of runs, and the words of a premise with a weight above zero.

Of several runs, also the means and standard deviations by kind of attention.
"""

FIGURES = """Draw the attention of several runs to the premises of some lines."""


def evaluate_labels(options: argparse.Namespace) -> None:
    """Print the table of each configuration: `multilabel`."""
    if options.test and len(options.config) > 1:
        raise UserError("--test: takes one configuration")
    for path in options.config:
        settings = read_settings(path, Settings)
        print(multilabel_table.evaluate(settings, options.test), flush=True)


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line; `do` is the function of the command."""
    parser = argument_parser(__doc__)
    commands = parser.add_subparsers(required=True)
    _add_multilabel(_command(commands, "multilabel", MULTILABEL, evaluate_labels))
    actions = add_subcommand(commands, "nli", NLI).add_subparsers(required=True)
    _add_train(_command(actions, "train", TRAIN, nli_commands.train))
    _add_evaluate(_command(actions, "evaluate", EVALUATE, nli_commands.evaluate))
    _add_figures(_command(actions, "figures", FIGURES, nli_commands.figures))
    return parser.parse_args(arguments)


def _command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    description: str,
    do: Callable[[argparse.Namespace], None],
) -> AddArgument:
    """Add a command, which `do` runs; return the function that adds arguments to it."""
    parser = add_subcommand(commands, name, description)
    parser.set_defaults(do=do)
    return parser.add_argument


def _add_multilabel(add: AddArgument) -> None:
    """Add the arguments of `multilabel`."""
    add("config", nargs="+", type=Path, help="configurations; each has its own table")
    add("--test", type=Path, help="file to evaluate instead of cross-validation")


def _add_train(add: AddArgument) -> None:
    """Add the arguments of `nli train`."""
    add("config", type=Path, metavar="FILE", help="such as config/nli/sick.yaml")
    add("--out", type=Path, required=True, metavar="RUN", help="new folder of the run")
    add("--seed", type=whole(0, 2**63 - 1), help="instead of the configuration's")
    add("--attention", type=ATTENTION, help="instead of the configuration's: a name or alpha")


def _add_evaluate(add: AddArgument) -> None:
    """Add the arguments of `nli evaluate`."""
    _add_runs(add)
    add("--output", type=Path, metavar="FILE", help="predictions (of the last run)")


def _add_figures(add: AddArgument) -> None:
    """Add the arguments of `nli figures`."""
    _add_runs(add)
    add("--lines", nargs="+", type=int, required=True, metavar="N", help="of that file")
    add("--names", nargs="+", metavar="NAME", help="of the runs (default: folder names)")
    add("--out", type=Path, required=True, metavar="FOLDER", help="for line-N.pdf and .png")


def _add_runs(add: AddArgument) -> None:
    """Add the arguments of commands that read runs."""
    add("runs", nargs="+", type=Path, metavar="RUN", help="folders of runs")
    add("--data", type=Path, required=True, metavar="FILE", help="pairs")


def main(arguments: Sequence[str]) -> int:
    """Run the command; return the exit status."""
    options = parse_arguments(arguments)
    options.do(options)
    return 0


if __name__ == "__main__":
    run_script(main)
