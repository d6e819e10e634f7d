"""Measure how many planted typing errors `onmt-entmax audit` and a softmax model find.

    python -m tools.bench.audit conll2018/turkish-train-high --rows 2000 --folds 2 --updates 1500 \\
        --layers 1 --size 128 --out run/audit/turkish      # --baseline_updates 6000
    python -m tools.bench.audit conll2018/turkish-dev --rows 1000 --seeds 1 2 3 \\
        --model data/models/inflection-86 --language turkish --out run/audit/turkish-dev

One random letter of 1 % of the forms is replaced, inserted, deleted or exchanged with the next;
counts of several seeds are added. Rows that were wrong before count as wrongly listed. Without
--model, models are trained, and baselines of the same size with softmax in attention and output.
These list rows whose form has a small probability: the least probable ones, as many as `audit`
lists, and those below 0.01 and 0.001.
"""

from __future__ import annotations

import argparse
import math
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from onmt_entmax.cli import audit
from onmt_entmax.cli.audited_rows import AuditedRow, surest_first
from onmt_entmax.cli.ending import argument_parser, run_script
from onmt_entmax.cli.table_configuration import configuration
from onmt_entmax.cli.tables import read_rows
from onmt_entmax.errors import UserError
from onmt_entmax.files import write_files
from onmt_entmax.report.tables import aligned_table
from onmt_entmax.strings.tables import Row


def mistyped(word: str, letters: Sequence[str], generator: random.Random) -> str:
    """Return the word with one random typing error: another word, and not an empty one."""
    while True:
        at = generator.randrange(len(word))
        letter = generator.choice(letters)
        before, here, after = word[:at], word[at], word[at + 1 :]
        replaced = letter + after
        inserted = letter + here + after
        deleted = after
        exchanged = after[:1] + here + after[1:]
        wrong = before + generator.choice((replaced, inserted, deleted, exchanged))
        if wrong not in ("", word):
            return wrong


def plant(rows: Sequence[Row], generator: random.Random) -> tuple[list[Row], set[int]]:
    """Return the rows with errors in 1 % of them, and the lines of these, from 1."""
    letters = sorted({letter for row in rows for letter in row.target if letter.isalpha()})
    lines = set(generator.sample(range(1, len(rows) + 1), max(1, len(rows) // 100)))
    changed = [
        row._replace(target=mistyped(row.target, letters, generator)) if line in lines else row
        for line, row in enumerate(rows, 1)
    ]
    return changed, lines


def checked_by(function: str, folder: Path, options: argparse.Namespace) -> list[AuditedRow]:
    """Audit the table of a folder with models whose attention and output have `function`."""
    words = [folder / "table.tsv", "--out", folder / function, "--language", options.language]
    if options.model:
        words += ["--model", options.model]
    else:
        longer = options.baseline_updates if function == "softmax" else None
        words += ["--folds", options.folds, "--updates", longer or options.updates]

    def written(*arguments: Any, **keywords: Any) -> str:
        """Return the configuration of `audit`, with this mapping and these sizes."""
        text = configuration(*arguments, **keywords).replace("entmax15", function)
        if function == "softmax":  # has nothing to warm up to
            text = re.sub("attention_warmup_steps: .*\n", "", text)
        text = text.replace("layers: 2", f"layers: {options.layers}")
        return text.replace("_size: 300", f"_size: {options.size}")

    with mock.patch.object(audit, "configuration", written):
        return audit.audit(audit.parse_arguments([*map(str, words)]))


def lists_of(
    options: argparse.Namespace, seed: int
) -> Iterator[tuple[str, Sequence[AuditedRow], set[int]]]:
    """Yield the name of each list, its rows, and the lines with planted errors.

    Raises:
        UserError: the table has fewer rows than wanted.
    """
    generator = random.Random(seed)
    folder = options.out / f"seed-{seed}"
    table_rows = read_rows(options.table)
    if not 1 <= options.rows <= len(table_rows):
        raise UserError(f"--rows: {options.table} has {len(table_rows):,}, not {options.rows:,}")
    rows, errors = plant(generator.sample(table_rows, options.rows), generator)
    table = "".join(
        f"{row.query.source}\t{row.target}\t{';'.join(row.query.tags)}\n" for row in rows
    )
    write_files({folder / "table.tsv": table})
    checked = checked_by("entmax15", folder, options)
    zero = surest_first(checked)
    yield "probability 0", zero, errors
    yield f"the first {2 * len(errors)}", zero[: 2 * len(errors)], errors
    name = "p"
    if not options.model:
        name, checked = "softmax, p", checked_by("softmax", folder, options)
    ranked = sorted(checked, key=log_prob)
    if not options.model:
        yield "softmax, as many", ranked[: len(zero)], errors
        yield f"softmax, the first {2 * len(errors)}", ranked[: 2 * len(errors)], errors
    for least in (0.01, 0.001):
        below = [each for each in ranked if log_prob(each) < math.log(least)]
        yield f"{name} < {least:g}", below, errors


def log_prob(each: AuditedRow) -> float:
    """Return the logarithm of the probability of a row's form."""
    return -math.inf if each.log_prob is None else each.log_prob


def main(arguments: Sequence[str]) -> int:
    """Print a line for each list of rows; return the exit status."""
    parser = argument_parser(__doc__)
    add = parser.add_argument
    add("table", type=Path)
    add("--out", type=Path, required=True, help="folder of tables and models")
    add("--model", type=Path, help="that did not see the table")
    add("--language", default="x", help="its name in the model")
    add("--seeds", type=int, nargs="+", default=[1])
    numbers = {"rows": 2000, "folds": 2, "updates": 1500, "layers": 2, "size": 300}
    for name, default in numbers.items():
        add(f"--{name}", type=int, default=default, help=f"default {default}")
    add("--baseline_updates", type=int, help="of the softmax models (default: --updates)")
    options = parser.parse_args(arguments)
    totals: dict[str, Counts] = {}
    for seed in options.seeds:
        for name, listed, errors in lists_of(options, seed):
            counts = totals.setdefault(name, Counts())
            counts.listed += len(listed)
            counts.found += len({each.row.number for each in listed} & errors)
            counts.planted += len(errors)
    lines = [["rows", "listed", "planted", "precision", "recall"]]
    lines += [[name, *counts.cells()] for name, counts in totals.items()]
    print(aligned_table(lines))
    return 0


@dataclass
class Counts:
    """Rows of a list, over all seeds.

    Attributes:
        listed: all its rows.
        found: those with planted errors.
        planted: planted errors of the tables.
    """

    listed: int = 0
    found: int = 0
    planted: int = 0

    def cells(self) -> list[str]:
        """Return the cells of the printed table."""
        precision = self.found / max(self.listed, 1)
        recall = self.found / self.planted
        shares = [f"{100 * share:.0f} %" for share in (precision, recall)]
        return [f"{self.listed:,}", f"{self.found} of {self.planted}", *shares]


if __name__ == "__main__":
    run_script(main)
