"""The console command `onmt-entmax`, and the scripts of the same names in a checkout."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple


class Command(NamedTuple):
    """A console command."""

    module: str  # below `onmt_entmax.cli`
    summary: str
    script: str  # of a checkout


COMMANDS: Mapping[str, Command] = {
    "train": Command("train", "train a model", "train.py"),
    "translate": Command("translate", "translate a file, with certificates", "translate.py"),
    "inflect": Command("inflect", "inflect words", "tools/inflect.py"),
    "score": Command("score", "probabilities of given targets", "tools/score.py"),
    "suggest": Command("suggest", "tokens that may follow a prefix", "tools/suggest.py"),
    "combine": Command("combine", "average reports of several models", "tools/combine.py"),
    "distill": Command("distill", "training pairs from several models", "tools/distill.py"),
    "report": Command("report", "a report as an HTML page", "tools/report_page.py"),
    "sparsity": Command("sparsity", "count nonzeros of attention and output", "tools/sparsity.py"),
    "figures": Command("figures", "the papers' figures", "tools/figures.py"),
    "import-onmt": Command(
        "import_onmt", "import an OpenNMT-py checkpoint", "tools/import_onmt_checkpoint.py"
    ),
    "experiment": Command("experiment", "run a matrix of trainings", "tools/experiment.py"),
    "bleu": Command("bleu", "BLEU, chrF and TER with significance", "tools/bleu.py"),
    "sigmorphon": Command("sigmorphon", "prepare and evaluate inflection", "tools/sigmorphon.py"),
    "fetch-sigmorphon": Command(
        "fetch_sigmorphon", "download the SIGMORPHON 2018 data", "tools/fetch_sigmorphon.py"
    ),
    "prepare-mt": Command("prepare_mt", "prepare a parallel corpus", "tools/prepare_mt.py"),
}


def run(name: str, arguments: Sequence[str], program: str) -> int:
    """Run a command under the name that its messages begin with; return the exit status."""
    from onmt_entmax.cli.ending import run_command

    return run_command(COMMANDS[name].module, arguments, program)


def door(name: str) -> None:
    """Be the script of a checkout that stands for a command."""
    sys.exit(run(name, sys.argv[1:], Path(sys.argv[0]).name))


def main() -> int:
    """Be the console command `onmt-entmax`."""
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name not in COMMANDS:
        for known, command in COMMANDS.items():
            print(f"  {known:18} {command.summary}")
        return 0 if name in ("", "-h", "--help") else 2
    return run(name, sys.argv[2:], f"onmt-entmax {name}")
