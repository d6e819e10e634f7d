"""Rows that mix scripts, which an audit lists."""

from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cli.tables import write_table
from tests.cli.untrained_audits import audit_without_models
from tests.inflection_models import write_model

CYRILLIC_A, CYRILLIC_BE = "\N{CYRILLIC SMALL LETTER A}", "\N{CYRILLIC SMALL LETTER BE}"
INSIDE = f"c{CYRILLIC_A}"  # a Latin letter and a Cyrillic one
ACROSS = f"{CYRILLIC_A}{CYRILLIC_BE}"  # a form in Cyrillic, of a lemma in Latin


class Mixed(NamedTuple):
    """The audit of a table in which the last two of three rows mix scripts."""

    rows: list[list[str]]
    """The columns of each listed row."""
    printed: str


@pytest.fixture
def mixed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mixed:
    model = write_model(tmp_path / "model", 8, end=3)
    rows = ["Lemma\tForm\tMSD", "ab\tab\tV", f"{INSIDE}\t{INSIDE}\tV", f"ab\t{ACROSS}\tV"]
    table = write_table(tmp_path / "table", *rows)
    options = ["--out", tmp_path / "out", "--model", model, "--language", "german"]
    printed = audit_without_models(monkeypatch, [table, *options]).printed
    listed = (tmp_path / "out" / "scripts.tsv").read_text("utf-8").splitlines()
    return Mixed([row.split("\t") for row in listed], printed)


def test_rows_that_mix_scripts_are_listed(mixed: Mixed) -> None:
    """Each row begins with the number of its line in the table, and the heading is line 1."""
    assert [row[:2] for row in mixed.rows] == [["3", INSIDE], ["4", "ab"]]


def test_a_mixture_of_scripts_is_explained(mixed: Mixed) -> None:
    inside, across = (row[-1] for row in mixed.rows)
    assert inside == f"'{INSIDE}' mixes scripts: Latin with Cyrillic {CYRILLIC_A} (U+0430)"
    assert across == f"'{ACROSS}' is in Cyrillic, its lemma Latin"


def test_rows_that_mix_scripts_are_counted(mixed: Mixed) -> None:
    assert "scripts.tsv: 2 of 3 rows mix scripts\n" in mixed.printed


def test_how_the_table_is_read_is_printed(mixed: Mixed) -> None:
    assert "table, 3 rows: columns source, target, tags between tabs; heading " in mixed.printed
