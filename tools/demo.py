"""The demonstration behind `make demo`: train on the samples, and translate with certificates.

It shows each command after a `$`, and runs it. A shell in the root of the repository can repeat
them all.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
from pathlib import Path

from onmt_entmax.strings.task import INFLECTION
from onmt_entmax.strings.units import decode_word

ROOT = Path(__file__).resolve().parent.parent
# Relative to the root, as the commands name them.
MODEL = Path("run/demo/model")
SOURCE = Path("run/demo/data/dev.src")
REFERENCE = Path("run/demo/data/dev.tgt")
PREDICTIONS = Path("run/demo/dev.pred")  # `N_BEST` lines for each word
BEST = Path("run/demo/dev.best")  # one line for each word
REPORT = Path("run/demo/dev.report.jsonl")
PAGE = Path("run/demo/dev.html")
N_BEST = 5  # predictions of each word
SHOWN = 8  # words with several possible forms that are printed


def run(*words: object) -> None:
    """Show a command of `onmt-entmax` and run it from the repository's root.

    Raises:
        subprocess.CalledProcessError: it failed.
    """
    texts = [str(word) for word in words]
    print(f"\n$ onmt-entmax {shlex.join(texts)}", flush=True)
    subprocess.run([sys.executable, "-m", "onmt_entmax", *texts], cwd=ROOT, check=True)


def show_activation() -> None:
    """Show the command after which a shell finds `onmt-entmax`, if `make` installed it."""
    activate = Path(".venv/bin/activate")
    if (ROOT / activate).exists():
        print(f"\n$ . {activate}", flush=True)


def keep_best(predictions: Path, best: Path, n_best: int) -> None:
    """Show a shell command that keeps the first of each `n_best` lines, and run it."""
    command = f"awk 'NR % {n_best} == 1' {predictions} > {best}"
    print(f"\n$ {command}", flush=True)
    subprocess.run(command, cwd=ROOT, check=True, shell=True)


def query(source: str) -> str:
    """Return the query of a source line in a readable form: `english, dream (V, PST)`."""
    lemma, tags, language = INFLECTION.decode_source(source.split())
    return f"{language}, {lemma} ({', '.join(tags)})"


def show_ambiguous(report: Path) -> None:
    """Print words with several possible forms, all of which were found."""
    records = [json.loads(line) for line in report.read_text(encoding="utf-8").splitlines()]
    several = [
        record
        for record in records
        if record["certificate"] == "exhaustive" and len(record["hypotheses"]) > 1
    ]
    second_best = 1
    several.sort(key=lambda record: record["hypotheses"][second_best]["prob"], reverse=True)
    print("\nWords with more than one possible form; every other string has probability 0:")
    for record in several[:SHOWN]:
        forms = [
            f"{decode_word(hypothesis['text'].split())} {100 * hypothesis['prob']:.1f} %"
            for hypothesis in record["hypotheses"]
        ]
        print(f"  {query(record['source']):45} {', '.join(forms)}")


def demonstrate() -> None:
    """Run all commands.

    Raises:
        subprocess.CalledProcessError: one of them failed.
    """
    show_activation()
    run("prepare", "sigmorphon", "--data", "data/samples", "--out", SOURCE.parent)
    print("\nThe demo trains a smaller model than that of train.yaml, in less time:")
    run("train", "-config", "config/demo/demo.yaml", "-overwrite")
    outputs = ["-output", PREDICTIONS, "-exactness_report", REPORT, "-n_best", N_BEST]
    run("translate", "-model", MODEL, "-src", SOURCE, *outputs)
    keep_best(PREDICTIONS, BEST, N_BEST)
    run("evaluate", "--source", SOURCE, "--reference", REFERENCE, "--predictions", BEST)
    show_ambiguous(ROOT / REPORT)
    run("report", "-model", MODEL, "-report", REPORT, "-output", PAGE, "-details", "all")


def main() -> int:
    """Run everything; return the exit status."""
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    try:
        demonstrate()
    except subprocess.CalledProcessError as error:
        return int(error.returncode)
    except KeyboardInterrupt:
        return 130
    print(f"\nThe trained model: {MODEL}")
    print(f"A page of every word, with its lattice of possible forms and its attention: {PAGE}")
    print(f"Open it in a browser: {(ROOT / PAGE).as_uri()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
