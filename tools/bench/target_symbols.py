"""Compare the predictions of `target_symbols: any` and `target_symbols: language`, by language.

    python -m tools.bench.target_symbols run/2023/model --dev part1/*.dev
    python -m tools.bench.target_symbols data/models/inflection-86 --dev D/*-dev \\
        --train D/*-train-high --rows 100

A symbol is foreign to a row if neither a training target of its language nor the row's own source
has it. Models of earlier versions do not record the symbols of training targets; --train names the
tables that they were trained on. --rows limits the rows of each language, drawn with seed 0.

Columns:

    rows               predicted rows
    gold               rows whose gold target has a foreign symbol, which `language` cannot predict
    foreign            rows whose best output with `any` has a foreign symbol
    changed            rows whose best output differs between the settings
    right              changed rows that are right only with `language`
    wrong              changed rows that are right only with `any`
    accuracy any       accuracy with `any`, in percent
    accuracy language  accuracy with `language`, in percent
    only any           outputs with `any` that are proven to be the only one (accuracy in percent)
    only language      the same with `language`
"""

from __future__ import annotations

import random
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from onmt_entmax.checkpoint import load
from onmt_entmax.cli.ending import argument_parser, run_script
from onmt_entmax.prediction import Prediction
from onmt_entmax.rules import whole
from onmt_entmax.transducer import Transducer
from tools.bench.target_symbol_rows import (
    LanguageRows,
    language_rows,
    rows_by_language,
    with_symbols,
)

SEED = 0  # of the rows that --rows draws


def predict_restricted(
    transducer: Transducer, table: LanguageRows, unrestricted: Sequence[Prediction]
) -> list[Prediction]:
    """Return the predictions with `language`, from those with `any`.

    Rows whose only possible output has no foreign symbol are not predicted again, since the
    restriction cannot change them.

    Args:
        transducer: predicts with `language`.
        table: rows to predict.
        unrestricted: their predictions with `any`.
    """
    predictions = list(unrestricted)
    may_change = [
        index
        for index, (row, prediction) in enumerate(zip(table.rows, unrestricted, strict=True))
        if not prediction.only or table.is_foreign(row, prediction.text)
    ]
    restricted = transducer.predictions(table.rows[index].query for index in may_change)
    for index, prediction in zip(may_change, restricted, strict=True):
        predictions[index] = prediction
    return predictions


@dataclass
class SettingCounts:
    """Counts of the predictions with one setting of `target_symbols`.

    Attributes:
        right: predictions that equal the gold target.
        only: predictions that are proven to be the only possible output.
        only_right: those of `only` that equal the gold target.
    """

    right: int = 0
    only: int = 0
    only_right: int = 0

    def add(self, prediction: Prediction, gold: str) -> None:
        """Count a prediction."""
        is_right = prediction.text == gold
        self.right += is_right
        self.only += prediction.only
        self.only_right += prediction.only and is_right

    def only_cell(self) -> str:
        """Return the number of proven predictions, and their accuracy in percent."""
        return f"{self.only:,} ({100 * self.only_right / max(self.only, 1):.2f})"


@dataclass
class Counts:
    """Counts of rows for one line of the table.

    Attributes:
        rows: all rows.
        gold: rows whose gold target has a foreign symbol.
        foreign: rows whose prediction with `any` has a foreign symbol.
        changed: rows whose predictions differ.
        became_right: rows that are right only with `language`.
        became_wrong: rows that are right only with `any`.
        unrestricted: counts of the predictions with `any`.
        restricted: counts of the predictions with `language`.
    """

    rows: int = 0
    gold: int = 0
    foreign: int = 0
    changed: int = 0
    became_right: int = 0
    became_wrong: int = 0
    unrestricted: SettingCounts = field(default_factory=SettingCounts)
    restricted: SettingCounts = field(default_factory=SettingCounts)

    def add(
        self, table: LanguageRows, unrestricted: Sequence[Prediction], restricted: list[Prediction]
    ) -> None:
        """Count the rows of a language.

        Args:
            table: the rows.
            unrestricted: their predictions with `any`.
            restricted: their predictions with `language`.
        """
        for row, before, after in zip(table.rows, unrestricted, restricted, strict=True):
            before_is_right = before.text == row.target
            after_is_right = after.text == row.target
            self.rows += 1
            self.gold += table.is_foreign(row, row.target)
            self.foreign += table.is_foreign(row, before.text)
            self.changed += before.text != after.text
            self.became_right += after_is_right and not before_is_right
            self.became_wrong += before_is_right and not after_is_right
            self.unrestricted.add(before, row.target)
            self.restricted.add(after, row.target)

    def cells(self) -> dict[str, str]:
        """Return the cells of the line by their headings, which the module's docstring explains."""
        return {
            "rows": f"{self.rows:,}",
            "gold": f"{self.gold:,}",
            "foreign": f"{self.foreign:,}",
            "changed": f"{self.changed:,}",
            "right": f"{self.became_right:,}",
            "wrong": f"{self.became_wrong:,}",
            "accuracy any": self._accuracy(self.unrestricted),
            "accuracy language": self._accuracy(self.restricted),
            "only any": self.unrestricted.only_cell(),
            "only language": self.restricted.only_cell(),
        }

    def _accuracy(self, setting: SettingCounts) -> str:
        """Return the accuracy with one setting, in percent."""
        return f"{100 * setting.right / max(self.rows, 1):.2f}"


def parse_arguments(arguments: Sequence[str]) -> Namespace:
    """Read the command line."""
    parser = argument_parser(__doc__)
    parser.add_argument("model", type=Path, help="run or model folder")
    parser.add_argument("--dev", nargs="+", type=Path, required=True, help="tables to predict")
    parser.add_argument("--train", nargs="+", type=Path, default=[], help="training tables")
    parser.add_argument(
        "--rows", type=whole(0, 10**9), default=0, help="most rows of a language (0: all)"
    )
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    """Print the table; return the exit status."""
    options = parse_arguments(arguments)
    model = load(options.model)
    unrestricted = Transducer(model, target_symbols="any")
    if options.train:
        model = with_symbols(model, rows_by_language(options.train, unrestricted))
    tables = language_rows(model, rows_by_language(options.dev, unrestricted))
    restricted = Transducer(model, target_symbols="language")
    total = Counts()
    print("language", *total.cells(), sep="\t")  # the headings
    for language, table in tables.items():
        if 0 < options.rows < len(table.rows):
            table = replace(table, rows=random.Random(SEED).sample(table.rows, options.rows))
        before = list(unrestricted.predictions(row.query for row in table.rows))
        after = predict_restricted(restricted, table, before)
        counts = Counts()
        for line_counts in (counts, total):
            line_counts.add(table, before, after)
        print(language, *counts.cells().values(), sep="\t", flush=True)
    print("all", *total.cells().values(), sep="\t")
    return 0


if __name__ == "__main__":
    run_script(main)
