"""Errors that the benchmark of `audit` plants into tables."""

import random

import pytest

from onmt_entmax.errors import UserError
from onmt_entmax.strings.tables import Row
from onmt_entmax.strings.task import Query
from tools.bench.planted_errors import PlantedTable, plant

FORM = "kitabı"
ROWS = [Row(number, Query("kitap", ("N",), "x"), FORM, ()) for number in range(1, 301)]


@pytest.fixture
def planted() -> PlantedTable:
    """The table of 300 equal rows, with errors."""
    return plant(ROWS, random.Random(1))


def test_one_row_in_a_hundred_gets_an_error(planted: PlantedTable) -> None:
    assert len(planted.errors) == 3


def test_a_table_of_few_rows_gets_one_error() -> None:
    assert len(plant(ROWS[:20], random.Random(1)).errors) == 1


def test_forms_without_letters_are_refused() -> None:
    digits = [row._replace(target="1984") for row in ROWS]
    with pytest.raises(UserError, match="no form has a letter"):
        plant(digits, random.Random(1))


def test_only_the_forms_of_planted_lines_change(planted: PlantedTable) -> None:
    changed = {line for line, row in enumerate(planted.rows, 1) if row.target != FORM}
    assert changed == planted.errors
