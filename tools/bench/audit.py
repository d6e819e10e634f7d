"""Measure how many planted typing errors `onmt-entmax audit` and a softmax model find.

    python -m tools.bench.audit conll2018/turkish-train-high --rows 2000 --folds 2 --updates 1500 \\
        --layers 1 --size 128 --out run/audit/turkish      # --baseline_updates 6000
    python -m tools.bench.audit conll2018/turkish-dev --rows 1000 --seeds 1 2 3 \\
        --model data/models/inflection-86 --language turkish --out run/audit/turkish-dev

One random letter of 1 % of the forms is replaced, inserted, deleted or exchanged with the next;
counts of several seeds are added. Rows that were wrong before count as wrongly listed. Without
--model, models are trained, and baselines of the same size with softmax in attention and output.

These lists of suspect rows are printed, for N twice the number of planted errors of a table:

probability 0         the list of `audit`: rows whose form the model excludes
the first N           its first rows; `audit` sorts it by the probability of the model's best form
p < 0.01, < 0.001     with --model: rows whose form is less probable
softmax, as many      the least probable rows of a baseline, as many as `audit` lists
softmax, the first N  the least probable rows of a baseline
softmax, p < ...      rows whose form is less probable in a baseline
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
LOOKED_AT = 2  # rows for each planted error, in lists that are as long as somebody may check
# Flags of the baselines. Their attention has nothing to warm up to.
SOFTMAX = (
    *("-global_attention_function", "softmax"),
    *("-generator_function", "softmax"),
    *("-attention_warmup_steps", "0"),
)


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
    if options.model:
        checked = audited_by_model(folder, options)
    else:
        checked = audited_by_trainings(folder, "entmax15", options)
    impossible, _ = excluded_rows(checked)
    first = LOOKED_AT * len(table.errors)
    suspects = {"probability 0": impossible, f"the first {first}": impossible[:first]}
    if options.model:
        return suspects | _improbable("p", checked)
    baseline = audited_by_trainings(folder, "softmax", options)
    least_probable = sorted(baseline, key=log_prob)
    suspects["softmax, as many"] = least_probable[: len(impossible)]
    suspects[f"softmax, the first {first}"] = least_probable[:first]
    return suspects | _improbable("softmax, p", baseline)


def _improbable(name: str, checked: Sequence[AuditedRow]) -> dict[str, list[AuditedRow]]:
    """Return the rows below each of `THRESHOLDS`, by the name of their probability."""
    return {
        f"{name} < {threshold:g}": [row for row in checked if log_prob(row) < math.log(threshold)]
        for threshold in THRESHOLDS
    }


def audited_by_model(folder: Path, options: argparse.Namespace) -> list[AuditedRow]:
    """Return the rows of `table.tsv` in a folder, as `audit` checks them by `--model`."""
    return _audit(folder, "entmax15", options, ["--model", options.model])


def audited_by_trainings(
    folder: Path, function: str, options: argparse.Namespace
) -> list[AuditedRow]:
    """Return the rows of `table.tsv` in a folder, as `audit` checks them by models that it trains.

    Args:
        folder: also receives the models, below the name of their function.
        function: mapping of attention and output: "entmax15", or "softmax" for the baselines.
        options: options of the command line.
    """
    updates = options.updates
    flags = ["-layers", options.layers, "-rnn_size", options.size, "-word_vec_size", options.size]
    if function == "softmax":
        updates = options.baseline_updates or options.updates
        flags += SOFTMAX
    return _audit(
        folder, function, options, ["--folds", options.folds, "--updates", updates], flags
    )


def _audit(
    folder: Path,
    output: str,
    options: argparse.Namespace,
    arguments: Sequence[object],
    training_flags: Sequence[object] = (),
) -> list[AuditedRow]:
    """Run `audit` on `table.tsv`.

    Args:
        folder: folder that has the table.
        output: name of a folder in it, for models.
        options: options of the command line.
        arguments: further ones of `audit`.
        training_flags: further arguments of `onmt-entmax train`.
    """
    words = [folder / "table.tsv", "--out", folder / output, "--language", options.language]
    parsed = audit.parse_arguments([str(word) for word in (*words, *arguments)])
    return audit.audit(parsed, [str(flag) for flag in training_flags])


def log_prob(row: AuditedRow) -> float:
    """Return the logarithm of the probability of a row's form."""
    return -math.inf if row.log_prob is None else row.log_prob


@dataclass
class Counts:
    """Rows of a list, over all seeds.

    Attributes:
        listed: all its rows.
        found: those with planted errors.
        planted: planted errors of the tables, of which every table has one at least.
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
    print(aligned_table([HEADINGS, *(of_list.cells(name) for name, of_list in counts.items())]))
    return 0


if __name__ == "__main__":
    run_script(main)
