#!/usr/bin/env python
"""Models that share no vocabulary or no order of writing, combined by the strings they found.

`translate.py -model A B` averages what models say of the next token, for which they must write in
the same order over the same vocabulary. This averages the probabilities of whole strings instead,
as exactness reports list them: of a model that writes from left to right and one that writes from
right to left, say. Sparse outputs make that exact: where every search was exhaustive, the average
of the models is known completely, and elsewhere the bounds of the reports bound it
(`onmt_entmax/search/mixture.py`).

    python tools/sigmorphon.py prepare ... --reverse --out run/reversed/data
    python translate.py -model run/a/model -src run/data/dev.src -beam_size 5 -n_best 5 \\
        -output run/a.pred -exactness_report run/a.jsonl
    python translate.py -model run/reversed/model -src run/data/dev.src -beam_size 5 -n_best 5 \\
        -output run/reversed.pred -exactness_report run/reversed.jsonl
    python tools/combine.py --reports run/a.jsonl --reversed run/reversed.jsonl \\
        --output run/both.pred --report run/both.jsonl

Each report weighs the same, unless `--weights` says more: one number for each of `--reports`, then
for each of `--reversed`, whose strings are turned around, token by token. The report that is
written is an exactness report again, without what a mixture does not have (dropped and truncated
prefixes): a probability is the least that the string has on average, and it has at most `slack`
more, which is missing where that is nothing. With more of `-n_best` fewer strings are known by a
bound only. Where models are equally sure of different strings the report named first decides.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from onmt_entmax.commands import command
from onmt_entmax.errors import UserError
from onmt_entmax.files import replaced_when_done
from onmt_entmax.reports.reading import read_report
from onmt_entmax.reports.writers import ROUNDING
from onmt_entmax.search import Listed, Mixture, mix
from onmt_entmax.text.morphology import turned


def listed(record: dict[str, Any], reverse: bool) -> Listed:
    """What a record of an exactness report says of the strings.

    A string that finished and is not listed, because `-n_best` was small, has at most what is
    left of `mass`; any other at most `bound`, or `slack` where the record has one.
    """
    found: dict[str, float] = {}
    for hypothesis in record["hypotheses"]:
        text = turned(hypothesis["text"], reverse)
        found[text] = found.get(text, 0.0) + hypothesis["prob"]
    slack = record.get("slack", 0.0)
    rest = max(record["bound"], slack)
    if record["finished"] > len(record["hypotheses"]):
        rest = max(rest, max(0.0, record["mass"] - sum(found.values())) + ROUNDING)
    if record["certificate"] != "exhaustive":
        rest = max(rest, sys.float_info.min)  # a bound too small for a float is not 0
    return Listed(found, rest, slack)


def as_record(of_first: dict[str, Any], mixture: Mixture, excluded: float) -> dict[str, Any]:
    """A mixture as an object of an exactness report."""
    pairs = zip(mixture.strings, mixture.probabilities, strict=True)
    record = {
        "id": of_first["id"],
        "source": of_first["source"],
        "certificate": mixture.level,
        "bound": mixture.bound,
        "gap": mixture.gap if math.isfinite(mixture.gap) else None,
        "proven": mixture.proven,
        "mass": min(sum(mixture.probabilities), 1.0),
        "excluded": excluded,
        "finished": len(mixture.strings),
        "hypotheses": [
            {"text": text, "log_prob": math.log(prob) if prob else None, "prob": prob}
            for text, prob in pairs
        ],
    }
    return record | ({"slack": mixture.bound} if mixture.bound else {})


def together(paths: Sequence[Path]) -> Iterator[tuple[dict[str, Any], ...]]:
    """The records of several reports, those of one sentence together.

    Raises:
        UserError: a report cannot be read, or one has other sentences than the first.
    """
    for number, records in enumerate(zip_longest(*map(read_report, paths)), start=1):
        for path, record in zip(paths, records, strict=True):
            if record is None or records[0] is None:
                short = path if record is None else paths[0]
                raise UserError(f"{short}: {number - 1} sentences, but another report has more")
            if record["source"] != records[0]["source"]:
                raise UserError(f"{path}:{number}: another source than in {paths[0]}")
        yield records


def combine(
    rows: Iterable[tuple[dict[str, Any], ...]], reverse: Sequence[bool], weights: Sequence[float]
) -> Iterator[dict[str, Any]]:
    """The record of each sentence's mixture; a blank line stays as it is."""
    for records in rows:
        if is_blank(records[0]):
            yield records[0]
            continue
        pairs = list(zip(records, reverse, strict=True))
        mixture = mix([listed(*pair) for pair in pairs], weights)
        excluded = sum(w * r.get("excluded", 0.0) for w, r in zip(weights, records, strict=True))
        record = as_record(records[0], mixture, excluded)
        unfinished = [turned(r["unfinished"], each) for r, each in pairs if "unfinished" in r]
        if unfinished and not mixture.strings:
            record["unfinished"] = unfinished[0]
        yield record


def is_blank(record: dict[str, Any]) -> bool:
    """Whether there was nothing to read in the line of a record."""
    return not record["source"].strip()


def best(record: dict[str, Any]) -> str:
    """The line to write, as translate.py chooses it."""
    texts = [hypothesis["text"] for hypothesis in record["hypotheses"]]
    return str([*texts, record.get("unfinished", "")][0])


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Reads the command line; ends the program with status 2 where it is wrong."""
    parser = argparse.ArgumentParser(description="Average models by the strings they found.")
    add = parser.add_argument
    add("--reports", type=Path, nargs="+", default=[], help="-exactness_report of translate.py")
    add("--reversed", type=Path, nargs="+", default=[], help="those of models that write backwards")
    add("--weights", type=float, nargs="+", help="one for each report; all the same by default")
    add("--output", type=Path, required=True, help="the most probable strings, one a line")
    add("--report", type=Path, help="an exactness report of the average")
    options = parser.parse_args(arguments)
    count = len(options.reports) + len(options.reversed)
    if not count:
        raise UserError("name the reports to combine: --reports, --reversed or both")
    options.weights = options.weights or [1.0] * count
    if len(options.weights) != count:
        raise UserError(f"--weights has {len(options.weights)} numbers for {count} reports")
    if not all(0 < weight < math.inf for weight in options.weights):
        raise UserError("--weights must be positive numbers")
    return options


@command
def main(arguments: Sequence[str] | None = None) -> int:
    """Writes the files; an error of the user's is one line on the standard error and status 2."""
    options = parse_arguments(arguments)
    paths = options.reports + options.reversed
    reverse = [False] * len(options.reports) + [True] * len(options.reversed)
    weights = [weight / sum(options.weights) for weight in options.weights]
    levels: Counter[str] = Counter()
    single = 0
    written = [options.output] + ([options.report] if options.report else [])
    with replaced_when_done(written) as files:
        for record in combine(together(paths), reverse, weights):
            print(best(record), file=files[0])
            for file in files[1:]:
                print(json.dumps(record, ensure_ascii=False), file=file)
            if is_blank(record):
                continue
            levels[record["certificate"]] += 1
            alone = record["certificate"] == "exhaustive" and record["finished"] == 1
            single += alone and not record["excluded"]
    sentences = sum(levels.values())
    total = max(sentences, 1)
    print(f"{options.output}: {sentences} sentences")
    print(f"  every possible string known        {levels['exhaustive'] / total:7.2%}")
    print(f"  the most probable string proven    {(sentences - levels['none']) / total:7.2%}")
    print(f"  one string has all the probability {single / total:7.2%}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
