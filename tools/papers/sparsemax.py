"""Repeat the experiments of Martins and Astudillo (2016): multi-label, and attention over pairs.

    python -m tools.papers.sparsemax multilabel config/multilabel/scene.yaml
    python -m tools.papers.sparsemax multilabel config/multilabel/scene.yaml \\
        --test run/multilabel/data/scene-test.arff
    python -m tools.papers.sparsemax nli train config/nli/sick.yaml --out run/nli/sparsemax-1
    python -m tools.papers.sparsemax nli evaluate run/nli/* --data sick/dev.tsv
    python -m tools.papers.sparsemax nli figures run/nli/softmax-1 run/nli/sparsemax-1 \\
        --data sick/dev.tsv --lines 12 40 --out run/pictures

multilabel (section 4.2) cross-validates linear classifiers with several losses, or evaluates a test
file. Each row of the training file is predicted by a model that was chosen and fitted without it:
outer folds measure F1, inner folds choose L2 and threshold (or scale of the scores). With --test,
all training rows choose and fit. Rows without labels are not trained on and do not count in F1.
Micro and macro F1 each have their own choices. Macro F1 is 2PR / (P + R) of the mean precision P
and the mean recall R of the labels, as in the authors' code; the mean of the labels' F1, which
scikit-learn calls macro, is of the same predictions. The folder `out` receives, for each loss,
LOSS.json (F1, choices), LOSS.predictions.jsonl and table.md, which is also printed; with --test,
these names have `.test` in them. A loss whose files are there is not fitted again.

Keys of its configuration: name (scene, emotions, birds, cal500 and reuters have the paper's figures
beside ours), train (ARFF, if it ends so, or SVMlight), labels (Mulan's list in XML), out, seeds (of
the folds: 5), losses (names or alphas: logistic, softmax, sparsemax, entmax15), and the grid: folds
(5), l2, logistic_thresholds, softmax_thresholds (in multiples of 1 / number of labels), scales (of
the scores, for sparse losses), standardise (true; false keeps features as they are).

nli (section 4.3) trains, evaluates and shows attention classifiers of pairs. `train` writes the
best epoch so far to --out whenever there is a better one. `evaluate` prints accuracy and the
words of a premise with a weight above zero; of several runs, also their means and standard
deviations by kind of attention. `figures` draws the attention of several runs to the premises of
some lines. A file of pairs is SNLI's if its name ends in .jsonl, else a table with the columns
sentence_A, sentence_B and entailment_judgment, as SICK's.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from onmt_entmax.cli.ending import argument_parser, run_script
from onmt_entmax.errors import UserError
from onmt_entmax.rules import whole
from tools.papers import multilabel_table, nli_commands
from tools.papers.arguments import Add
from tools.papers.multilabel_settings import Settings
from tools.papers.nli_model import ATTENTION
from tools.papers.settings_file import read_settings


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
    command = commands.add_parser("multilabel")
    command.set_defaults(do=evaluate_labels)
    add: Any = command.add_argument
    add("config", nargs="+", type=Path, help="configurations; each has its own table")
    add("--test", type=Path, help="file to evaluate instead of cross-validation")
    actions = commands.add_parser("nli").add_subparsers(required=True)
    command = actions.add_parser("train")
    command.set_defaults(do=nli_commands.train)
    add = command.add_argument
    add("config", type=Path, metavar="FILE", help="such as config/nli/sick.yaml")
    add("--out", type=Path, required=True, metavar="RUN", help="new folder of the run")
    add("--seed", type=whole(0, 2**63 - 1), help="in place of the configuration's")
    add("--attention", type=ATTENTION, help="in place of the configuration's: a name or alpha")
    command = actions.add_parser("evaluate")
    command.set_defaults(do=nli_commands.evaluate)
    add = command.add_argument
    _add_runs(add)
    add("--output", type=Path, metavar="FILE", help="predictions (of the last run)")
    command = actions.add_parser("figures")
    command.set_defaults(do=nli_commands.figures)
    add = command.add_argument
    _add_runs(add)
    add("--lines", nargs="+", type=int, required=True, metavar="N", help="of that file")
    add("--names", nargs="+", metavar="NAME", help="of the runs (default: folder names)")
    add("--out", type=Path, required=True, metavar="FOLDER", help="for line-N.pdf and .png")
    return parser.parse_args(arguments)


def _add_runs(add: Add) -> None:
    """Add the arguments of commands that read runs."""
    add("models", nargs="+", type=Path, metavar="RUN", help="folders of runs")
    add("--data", type=Path, required=True, metavar="FILE", help="pairs")


def main(arguments: Sequence[str]) -> int:
    """Run the command; return the exit status."""
    options = parse_arguments(arguments)
    options.do(options)
    return 0


if __name__ == "__main__":
    run_script(main)
