"""`onmt-entmax inflect`: the rows that it prints for queries at its standard input."""

from pathlib import Path

import pytest

from onmt_entmax import Inflector
from onmt_entmax.cli import inflect
from onmt_entmax.inflector import Inflection
from tests.cli.inflecting import Row, rows_of, type_lines
from tests.in_process import exit_status


@pytest.fixture
def rows(
    paradigm_model: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> list[Row]:
    """The rows for two queries, with the two best forms of each."""
    type_lines(monkeypatch, "english ab V;PST\ngerman b V;FUT\n")
    assert exit_status(inflect.main, ["--n_best", "2", "--model", str(paradigm_model)]) == 0
    return rows_of(capsys.readouterr().out)


@pytest.fixture
def english(paradigm_model: Path) -> Inflection:
    """The answer to the first query."""
    return Inflector([paradigm_model], n_best=2).inflect("english", "ab", "V;PST")


def test_rows_have_the_query(rows: list[Row]) -> None:
    english, german = ("english", "ab", "V;PST"), ("german", "b", "V;FUT")
    queries = [(row.language, row.lemma, row.tags) for row in rows]
    assert queries == [english, english, german, german]


def test_rows_have_the_rank_of_their_form(rows: list[Row]) -> None:
    assert [row.rank for row in rows] == ["1", "2", "1", "2"]


def test_rows_have_the_forms(rows: list[Row], english: Inflection) -> None:
    assert [row.form for row in rows[:2]] == [form.text for form in english.forms]


def test_rows_have_the_probabilities(rows: list[Row], english: Inflection) -> None:
    probabilities = [float(row.prob) for row in rows[:2]]
    assert probabilities == pytest.approx([form.prob for form in english.forms], rel=1e-4)


def test_rows_have_the_level_of_the_certificate(rows: list[Row], english: Inflection) -> None:
    assert [row.level for row in rows[:2]] == [english.level, english.level]


def test_rows_have_the_warnings_of_their_query(rows: list[Row]) -> None:
    """Training saw no tag FUT."""
    assert [row.warnings for row in rows] == ["", "", "unknown tag FUT", "unknown tag FUT"]
