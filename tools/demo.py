#!/usr/bin/env python
"""The demonstration behind `make demo`: train on the samples, decode with certificates, look.

It runs the commands that a user would run, and shows each of them.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
from pathlib import Path

from onmt_entmax.data.inflection import decode_source, decode_word

ROOT = Path(__file__).resolve().parent.parent
RUN = Path("run/demo")
SHOWN = 8  # words with several possible forms


def run(*words: str) -> None:
    """Show a command and run it from the repository's root."""
    print(f"\n$ python {shlex.join(words)}", flush=True)
    subprocess.run([sys.executable, *words], cwd=ROOT, check=True)


def question(source: str) -> str:
    """A source line as a person reads it: `english, dream (V, PST)`."""
    language, tags, lemma = decode_source(source.split())
    return f"{language}, {lemma} ({', '.join(tags)})"


def show_ambiguous(report: Path) -> None:
    """Print words for which the model's whole support is more than one form."""
    records = [json.loads(line) for line in report.read_text(encoding="utf-8").splitlines()]
    several = [
        record
        for record in records
        if record["certificate"] == "exhaustive" and len(record["hypotheses"]) > 1
    ]
    # Those whose second form is the most probable: real choices, not faint doubts.
    several.sort(key=lambda record: -record["hypotheses"][1]["prob"])
    print(
        "\nWords for which the model sees more than one form; every other string has probability 0:"
    )
    for record in several[:SHOWN]:
        forms = [
            f"{decode_word(h['text'].split())} {100 * h['prob']:.1f} %"
            for h in record["hypotheses"]
        ]
        print(f"  {question(record['source']):45} {', '.join(forms)}")


def main() -> int:
    """Run everything; returns the exit status."""
    argparse.ArgumentParser(description=__doc__).parse_args()  # there are no options but -h
    data = RUN / "data"
    pred, report = RUN / "dev.pred", RUN / "dev.report.jsonl"
    try:
        run("tools/sigmorphon.py", "prepare", "--data", "data/samples", "--out", str(data))
        run("train.py", "-config", "config/demo/demo.yaml", "-overwrite")
        run(
            *("translate.py", "-model", str(RUN / "model"), "-src", str(data / "dev.src")),
            *("-output", str(pred), "-exactness_report", str(report), "-n_best", "5"),
        )
        # The first of each five lines is the answer.
        lines = (ROOT / pred).read_text(encoding="utf-8").split("\n")[:-1:5]
        (ROOT / RUN / "dev.best").write_text("".join(f"{x}\n" for x in lines), encoding="utf-8")
        run(
            *("tools/sigmorphon.py", "evaluate", "--source", str(data / "dev.src")),
            *("--reference", str(data / "dev.tgt"), "--predictions", str(RUN / "dev.best")),
        )
    except subprocess.CalledProcessError as error:
        return int(error.returncode)
    except KeyboardInterrupt:
        return 130
    show_ambiguous(ROOT / report)
    print(f"\nThe report of every word: {report}; the trained model: {RUN / 'model'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
