"""Plant typing errors in a table, for `audit.py`."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from onmt_entmax.cli.inflection_rows import read_rows
from onmt_entmax.errors import UserError
from onmt_entmax.strings.tables import Row

ROWS_PER_ERROR = 100


@dataclass(frozen=True)
class PlantedTable:
    """A table with planted errors.

    Attributes:
        rows: all rows.
        errors: numbers of the rows with errors, from 1.
    """

    rows: Sequence[Row]
    errors: frozenset[int]

    def text(self) -> str:
        """Return the table as `audit` reads it."""
        return "".join(
            f"{row.query.source}\t{row.target}\t{';'.join(row.query.tags)}\n" for row in self.rows
        )


def planted_table(path: Path, count: int, seed: int) -> PlantedTable:
    """Return random rows of a table, with errors in 1 % of them.

    Args:
        path: path of the table.
        count: number of rows to draw.
        seed: seed of the rows and errors.

    Raises:
        UserError: the table cannot be read, has fewer rows, or no letter.
    """
    table = read_rows(path)
    if not 1 <= count <= len(table):
        raise UserError(f"--rows: {path} has {len(table):,}, not {count:,}")
    generator = random.Random(seed)
    return plant(generator.sample(table, count), generator)


def plant(rows: Sequence[Row], generator: random.Random) -> PlantedTable:
    """Return the rows with errors in 1 % of them, but at least in one.

    Raises:
        UserError: no form has a letter.
    """
    letters = sorted({letter for row in rows for letter in row.target if letter.isalpha()})
    if not letters:
        raise UserError("no form has a letter, so none can be mistyped")
    count = max(1, len(rows) // ROWS_PER_ERROR)
    errors = frozenset(generator.sample(range(1, len(rows) + 1), count))
    planted = [
        row._replace(target=mistyped(row.target, letters, generator)) if line in errors else row
        for line, row in enumerate(rows, 1)
    ]
    return PlantedTable(planted, errors)


def mistyped(word: str, letters: Sequence[str], generator: random.Random) -> str:
    """Return another word, not empty, that differs by one random typing error.

    Args:
        word: a word of one character or more.
        letters: those that may be typed.
        generator: random number generator.
    """
    while True:
        position = generator.randrange(len(word))
        new = generator.choice(letters)
        before, letter, after = word[:position], word[position], word[position + 1 :]
        replaced = new + after
        inserted = new + letter + after
        deleted = after
        exchanged = after[:1] + letter + after[1:]
        wrong = before + generator.choice((replaced, inserted, deleted, exchanged))
        if wrong not in ("", word):
            return wrong
