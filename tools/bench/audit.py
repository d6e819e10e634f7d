"""Measure how many planted typing errors `onmt-entmax audit` and a softmax model find.

    python -m tools.bench.audit conll2018/turkish-train-high --rows 2000 --folds 2 --updates 1500 \\
        --layers 1 --size 128 --out run/audit/turkish      # --baseline_updates 6000
    python -m tools.bench.audit conll2018/turkish-dev --rows 1000 --seeds 1 2 3 \\
        --model data/models/inflection-86 --language turkish --out run/audit/turkish-dev

1 % of the forms get a typing error: a random letter is replaced, inserted, deleted or exchanged
with the next one. Each seed draws other rows and other errors; the counts of all seeds are added.
Without --model, `audit` trains models, and this benchmark trains baselines of the same size, with
softmax in attention and output.

The benchmark compares these lists of suspect rows, where N is twice the number of planted errors:

probability 0         rows whose form the model excludes, as `audit` lists them
the first N           the first N of these; `audit` begins with those whose best form is surest
p < 0.01, < 0.001     with --model: rows whose form is less probable than that
softmax, as many      the least probable rows of a baseline, as many as `audit` lists
softmax, the first N  the N least probable rows of a baseline
softmax, p < ...      rows whose form is less probable than that in a baseline

A listed row without a planted error counts as wrong, even if the table itself had an error there.
"""

from __future__ import annotations

import argparse
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from onmt_entmax.cli import audit
from onmt_entmax.cli.audited_rows import AuditedRow, excluded_rows
from onmt_entmax.cli.ending import argument_parser, run_script
from onmt_entmax.files import write_files
from onmt_entmax.report.tables import aligned_table
from tools.bench.planted_errors import PlantedTable, planted_table

HEADINGS = ["rows", "listed", "planted", "precision", "recall"]
THRESHOLDS = (0.01, 0.001)  # a form that is less probable is listed
CHECKED_PER_ERROR = 2  # rows for each planted error in "the first N", which somebody may check
# Flags of the baselines, whose attention is softmax from the start: a warm-up would do nothing.
SOFTMAX = (
    *("-global_attention_function", "softmax"),
    *("-generator_function", "softmax"),
    *("-attention_warmup_steps", "0"),
)


@dataclass(frozen=True)
class Auditor:
    """Calls `audit` on a table, as its users do.

    Attributes:
        folder: has the table as `table.tsv`, and receives the models.
        options: options of the command line.
    """

    folder: Path
    options: argparse.Namespace

    def by_model(self) -> list[AuditedRow]:
        """Return the rows, as the model of `--model` judges them."""
        return self._audit("entmax15", ["--model", self.options.model])

    def by_trainings(self, function: str) -> list[AuditedRow]:
        """Return the rows, each as a model judges it that was trained on others.

        Args:
            function: mapping of attention and output: "entmax15", or "softmax" for the baselines.
                It also names the folder of the models.
        """
        options = self.options
        updates = options.updates
        sizes = {"layers": options.layers, "rnn_size": options.size, "word_vec_size": options.size}
        flags = [str(word) for name, size in sizes.items() for word in (f"-{name}", size)]
        if function == "softmax":
            updates = options.baseline_updates or options.updates
            flags += SOFTMAX
        return self._audit(function, ["--folds", options.folds, "--updates", updates], flags)

    def _audit(
        self, models: str, arguments: Sequence[object], training_flags: Sequence[str] = ()
    ) -> list[AuditedRow]:
        """Run `audit`.

        Args:
            models: name of the folder for models.
            arguments: arguments besides the table, `--out` and `--language`.
            training_flags: further arguments of `onmt-entmax train`.
        """
        table, out = self.folder / "table.tsv", self.folder / models
        words = [table, "--out", out, "--language", self.options.language, *arguments]
        return audit.audit(audit.parse_arguments([str(word) for word in words]), training_flags)


def suspects_of(
    table: PlantedTable, folder: Path, options: argparse.Namespace
) -> dict[str, list[AuditedRow]]:
    """Write a table, audit it, and return the lists of suspect rows by their printed names.

    Args:
        table: the table with planted errors.
        folder: folder for the table and the models.
        options: options of the command line.

    Raises:
        UserError: `audit` refuses the table.
    """
    write_files({folder / "table.tsv": table.text()})
    auditor = Auditor(folder, options)
    checked = auditor.by_model() if options.model else auditor.by_trainings("entmax15")
    impossible = excluded_rows(checked).suspects
    first = CHECKED_PER_ERROR * len(table.errors)
    suspects = {"probability 0": impossible, f"the first {first}": impossible[:first]}
    if options.model:
        return suspects | _improbable("p", checked)
    baseline = auditor.by_trainings("softmax")
    least_probable = sorted(baseline, key=log_prob)
    suspects["softmax, as many"] = least_probable[: len(impossible)]
    suspects[f"softmax, the first {first}"] = least_probable[:first]
    return suspects | _improbable("softmax, p", baseline)


def _improbable(name: str, checked: Sequence[AuditedRow]) -> dict[str, list[AuditedRow]]:
    """Return the rows whose form is less probable than each of `THRESHOLDS`.

    Args:
        name: name of the probability, with which the names of the lists begin.
        checked: all rows.
    """
    return {
        f"{name} < {threshold:g}": [row for row in checked if log_prob(row) < math.log(threshold)]
        for threshold in THRESHOLDS
    }


def log_prob(row: AuditedRow) -> float:
    """Return the logarithm of the probability of a row's form."""
    return -math.inf if row.log_prob is None else row.log_prob


@dataclass
class Counts:
    """Rows of a list, over all seeds.

    Attributes:
        listed: all its rows.
        found: those with planted errors.
        planted: planted errors of the tables; each table has at least one.
    """

    listed: int = 0
    found: int = 0
    planted: int = 0

    def add(self, suspects: Sequence[AuditedRow], errors: frozenset[int]) -> None:
        """Count the list of another seed, whose table has errors in these lines."""
        self.listed += len(suspects)
        self.found += len({suspect.row.number for suspect in suspects} & errors)
        self.planted += len(errors)

    def cells(self, name: str) -> list[str]:
        """Return the cells under `HEADINGS` of the list of this name."""
        precision = self.found / max(self.listed, 1)
        recall = self.found / self.planted
        shares = [f"{100 * share:.0f} %" for share in (precision, recall)]
        return [name, f"{self.listed:,}", f"{self.found} of {self.planted}", *shares]


def count_errors(options: argparse.Namespace) -> Mapping[str, Counts]:
    """Return the counts of each list, by its name."""
    counts: dict[str, Counts] = defaultdict(Counts)
    for seed in options.seeds:
        table = planted_table(options.table, options.rows, seed)
        for name, suspects in suspects_of(table, options.out / f"seed-{seed}", options).items():
            counts[name].add(suspects, table.errors)
    return counts


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argument_parser(__doc__)
    add = parser.add_argument
    add("table", type=Path, help="of lemma, form and tags")
    add("--out", type=Path, required=True, help="folder of tables and models")
    add("--model", type=Path, help="that did not see the table")
    add("--language", default="x", help="its name in the model")
    add("--seeds", type=int, nargs="+", default=[1], help="of rows and errors (default 1)")
    numbers = {"rows": 2000, "folds": 2, "updates": 1500, "layers": 2, "size": 300}
    for name, default in numbers.items():
        add(f"--{name}", type=int, default=default, help=f"default {default}")
    add("--baseline_updates", type=int, help="of the softmax models (default: --updates)")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    """Print a line for each list of rows; return the exit status."""
    counts = count_errors(parse_arguments(arguments))
    rows = [list_counts.cells(name) for name, list_counts in counts.items()]
    print(aligned_table([HEADINGS, *rows]))
    return 0


if __name__ == "__main__":
    run_script(main)
