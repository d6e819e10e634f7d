"""Measure how many planted typing errors `onmt-entmax audit` finds, and how many a softmax model.

    python -m tools.bench.audit conll2018/turkish-train-high --rows 2000 --folds 2 --updates 1500 \\
        --layers 1 --size 128 --out run/audit/turkish

One random letter of 1 % of the forms is replaced, inserted, deleted or exchanged with the next. The
baseline lists rows whose form has a small probability in models with softmax in attention and
output that are otherwise trained alike: the least probable ones, as many as `audit` lists, and
those below 0.01 and 0.001. Errors that the table had before count as wrongly listed.
"""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Sequence
from pathlib import Path
from unittest import mock

from onmt_entmax.cli import audit
from onmt_entmax.cli.audit import Checked, surest_first
from onmt_entmax.cli.prepare_sigmorphon import configuration
from onmt_entmax.data.inflection import Row, read_rows
from onmt_entmax.files import write_text
from onmt_entmax.report.tables import aligned_table


def mistyped(word: str, letters: Sequence[str], generator: random.Random) -> str:
    """Return the word with one random typing error."""
    while True:
        at, letter = generator.randrange(len(word)), generator.choice(letters)
        before, here, after = word[:at], word[at], word[at + 1 :]
        ends = letter + after, letter + here + after, after, after[:1] + here + after[1:]
        wrong = before + generator.choice(ends)
        if wrong not in ("", word):
            return wrong


def plant(rows: Sequence[Row], generator: random.Random) -> tuple[list[Row], set[int]]:
    """Return the rows with errors in 1 % of them, and the lines of these, from 1."""
    letters = sorted({letter for row in rows for letter in row.form if letter.isalpha()})
    lines = set(generator.sample(range(1, len(rows) + 1), len(rows) // 100))
    changed = [
        row._replace(form=mistyped(row.form, letters, generator)) if line in lines else row
        for line, row in enumerate(rows, 1)
    ]
    return changed, lines


def checked_by(function: str, options: argparse.Namespace) -> list[Checked]:
    """Audit the table with models whose attention and output have `function`."""
    words = [options.out / "table.tsv", "--out", options.out / function, "--updates"]
    words += [options.updates, "--folds", options.folds]

    def written(*arguments: object) -> str:
        text = configuration(*arguments).replace("entmax15", function)  # type: ignore[arg-type]
        text = text.replace("layers: 2", f"layers: {options.layers}")
        return text.replace("_size: 300", f"_size: {options.size}")

    with mock.patch.object(audit, "configuration", written):
        return audit.audit(audit.parse_arguments([*map(str, words)]))


def main() -> None:
    """Print a line for each list of rows."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("table", type=Path)
    parser.add_argument("--out", type=Path, required=True, help="folder of tables and models")
    for name, default in (
        *(("rows", 2000), ("folds", 2), ("updates", 1500)),
        *(("layers", 2), ("size", 300), ("seed", 1)),
    ):
        parser.add_argument(f"--{name}", type=int, default=default, help=f"default {default}")
    options = parser.parse_args()
    generator = random.Random(options.seed)
    rows, errors = plant(generator.sample(read_rows(options.table), options.rows), generator)
    table = "".join(f"{row.lemma}\t{row.form}\t{';'.join(row.tags)}\n" for row in rows)
    options.out.mkdir(parents=True, exist_ok=True)
    write_text(options.out / "table.tsv", table)
    zero = surest_first(checked_by("entmax15", options))

    def log_prob(each: Checked) -> float:
        return -math.inf if each.log_prob is None else each.log_prob

    ranked = sorted(checked_by("softmax", options), key=log_prob)
    lists = {
        "entmax, probability 0": zero,
        "softmax, as many": ranked[: len(zero)],
        **{
            f"softmax, p < {p:g}": [each for each in ranked if log_prob(each) < math.log(p)]
            for p in (0.01, 0.001)
        },
        f"entmax, first {2 * len(errors)}": zero[: 2 * len(errors)],
        f"softmax, first {2 * len(errors)}": ranked[: 2 * len(errors)],
    }
    lines = [["rows", "listed", "planted", "precision", "recall"]]
    for name, listed in lists.items():
        found = len({each.line for each in listed} & errors)
        shares = found / max(len(listed), 1), found / len(errors)
        counts = f"{len(listed):,}", f"{found} of {len(errors)}"
        lines.append([name, *counts, *(f"{share:.3f}" for share in shares)])
    print(aligned_table(lines))


if __name__ == "__main__":
    main()
