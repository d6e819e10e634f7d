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
more, which is missing where that is nothing. Its summary is beside it. With more of `-n_best` fewer
strings are known by a bound only. Where models are equally sure of different strings the report
named first decides.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from onmt_entmax.cli.ending import argument_parser
from onmt_entmax.errors import UserError
from onmt_entmax.files import refuse_overwriting, replaced_when_done
from onmt_entmax.report.combine import mixed
from onmt_entmax.report.measures import Counts
from onmt_entmax.report.reading import is_blank, is_only, read_report
from onmt_entmax.report.writers import with_summary


def together(paths: Sequence[Path]) -> Iterator[list[dict[str, Any]]]:
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
        yield list(records)


def count(counts: Counts, record: dict[str, Any]) -> None:
    """Count a sentence by its record."""
    if is_blank(record):
        counts.blank += 1
        return
    listed = bool(record["hypotheses"])
    counts.count(record["certificate"], record["finished"], listed, is_only(record))


def best(record: dict[str, Any]) -> str:
    """The line to write, as translate.py chooses it."""
    texts = [hypothesis["text"] for hypothesis in record["hypotheses"]]
    return str([*texts, record.get("unfinished", "")][0])


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Reads the command line; ends the program with status 2 where it is wrong."""
    parser = argument_parser(__doc__)
    add = parser.add_argument
    several = {"type": Path, "nargs": "+", "action": "extend", "default": []}
    add("--reports", **several, help="-exactness_report of translate.py")
    add("--reversed", **several, help="those of forms that were written from right to left")
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
    total = sum(options.weights)
    if not (all(weight > 0 for weight in options.weights) and total < float("inf")):
        raise UserError("--weights must be positive numbers, whose sum a float can hold")
    options.weights = [weight / total for weight in options.weights]
    return options


def main(arguments: Sequence[str]) -> int:
    """Writes the files; an error of the user's is one line on the standard error and status 2."""
    options = parse_arguments(arguments)
    paths = options.reports + options.reversed
    reverse = [False] * len(options.reports) + [True] * len(options.reversed)
    counts = Counts()
    refuse_overwriting(paths, [options.output, *with_summary(options.report)])
    with replaced_when_done([options.output, *with_summary(options.report)]) as files:
        for records in together(paths):
            blank = is_blank(records[0])
            record = records[0] if blank else mixed(records, reverse, options.weights)
            count(counts, record)
            print(best(record), file=files[0])
            if options.report:
                print(json.dumps(record, ensure_ascii=False, allow_nan=False), file=files[1])
        found = counts.as_dict()
        for file in files[2:]:
            of = {"reports": [str(path) for path in paths], "weights": options.weights}
            print(json.dumps(found | of, indent=2, ensure_ascii=False), file=file)
    print(f"{options.output}: {found['sentences']} sentences")
    print(f"  every possible string known        {found['exhaustive_percent']:6.2f}%")
    print(f"  the most probable string proven    {found['argmax_proven_percent']:6.2f}%")
    print(f"  one string has all the probability {found['single_hypothesis_percent']:6.2f}%")
    return 0
