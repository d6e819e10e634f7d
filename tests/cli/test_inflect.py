"""`onmt-entmax inflect`: the rows and the JSON of an answer."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from onmt_entmax import Inflector
from onmt_entmax.cli import inflect
from onmt_entmax.cli.inflection_lines import as_json, as_tsv
from onmt_entmax.inflector import Form, Inflection
from tests.cli.inflecting import Row, rows_of, type_lines
from tests.in_process import exit_status

# --- the text of an answer -------------------------------------------------------------------


@pytest.fixture
def warned(inflection_model: Path) -> Inflection:
    """An answer with a warning."""
    answer = Inflector([inflection_model]).inflect("german", "a b", "V;FUT")
    assert answer.warnings == ("unknown tag FUT",)
    return answer


@pytest.mark.parametrize(
    "forms",
    [
        pytest.param((), id="no form"),
        pytest.param((Form("a", math.log(0.5), 0.5), Form("b", -math.inf, 0.0)), id="impossible"),
    ],
)
def test_a_line_of_json_is_the_answer(warned: Inflection, forms: tuple[Form, ...]) -> None:
    answer = replace(warned, forms=forms)
    assert json.loads(as_json(answer)) == answer.to_dict()


def test_a_line_of_json_has_the_warnings(warned: Inflection) -> None:
    assert json.loads(as_json(warned))["warnings"] == ["unknown tag FUT"]


def test_a_row_ends_with_the_warning(warned: Inflection) -> None:
    assert as_tsv(warned).splitlines()[0].endswith("\tunknown tag FUT")


# --- printed rows ----------------------------------------------------------------------------


@pytest.fixture
def printed(
    paradigm_model: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> str:
    """What the command prints for two queries: words between spaces, and columns between tabs."""
    type_lines(monkeypatch, "english ab V;PST\n\ngerman\ta b\tV;FUT\r\n")
    assert exit_status(inflect.main, ["--n_best", "2", "--model", str(paradigm_model)]) == 0
    return capsys.readouterr().out


@pytest.fixture
def rows(printed: str) -> list[Row]:
    return rows_of(printed)


def test_rows_have_eight_columns(printed: str) -> None:
    assert {len(line.split("\t")) for line in printed.splitlines()} == {8}


def test_rows_have_the_query(rows: list[Row]) -> None:
    queries = list(dict.fromkeys((row.language, row.lemma, row.tags) for row in rows))
    assert queries == [("english", "ab", "V;PST"), ("german", "a b", "V;FUT")]


@pytest.mark.parametrize("language", ["english", "german"])
def test_rows_have_the_rank(rows: list[Row], language: str) -> None:
    """Two forms are asked for; the model has more."""
    assert [row.rank for row in rows if row.language == language] == ["1", "2"]


def test_rows_have_the_form_its_probability_and_the_certificate(
    rows: list[Row], paradigm_model: Path
) -> None:
    answer = Inflector([paradigm_model], n_best=2).inflect("english", "ab", "V;PST")
    first, best = rows[0], answer.forms[0]
    assert first.form == best.text
    assert float(first.prob) == pytest.approx(best.prob, rel=1e-4)
    assert first.level == answer.level


def test_rows_have_warnings(rows: list[Row]) -> None:
    first = next(row for row in rows if row.language == "german")
    assert first.warnings == "unknown tag FUT"
