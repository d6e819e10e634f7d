"""`onmt-entmax inflect`: its rows, records and warnings, and what it refuses."""

import io
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from onmt_entmax import Inflector
from onmt_entmax.cli import inflect
from onmt_entmax.cli.inflect import as_json, as_tsv
from onmt_entmax.data.vocabulary import Vocabularies, Vocabulary
from onmt_entmax.files.checksums import LIST_NAME, write_list
from onmt_entmax.inflector import Form, Inflection, Question
from tests.commands import json_lines
from tests.in_process import exit_status, refusal
from tests.inflection_models import VOCABULARIES, write_model

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


class Row(NamedTuple):
    """The columns of a printed row."""

    language: str
    lemma: str
    tags: str
    rank: str
    form: str
    prob: str
    level: str
    warnings: str


def rows_of(printed: str) -> list[Row]:
    """Return printed rows, each of which must have these columns."""
    return [Row(*line.split("\t")) for line in printed.splitlines()]


def type_lines(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Let the standard input have a text."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))


@pytest.fixture
def printed(
    inflection_model: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> str:
    """What the command prints for two queries, in both forms of a line."""
    type_lines(monkeypatch, "english ab V;PST\n\ngerman\ta b\tV;FUT\r\n")
    assert exit_status(inflect.main, ["--n_best", "2", "--model", str(inflection_model)]) == 0
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
    """A model may have a single form of a word; two are asked for."""
    ranks = [row.rank for row in rows if row.language == language]
    assert ranks in (["1"], ["1", "2"])


def test_rows_have_the_form_its_probability_and_the_certificate(
    rows: list[Row], inflection_model: Path
) -> None:
    answer = Inflector([inflection_model], n_best=2).inflect("english", "ab", "V;PST")
    first, best = rows[0], answer.forms[0]
    assert first.form == best.text
    assert float(first.prob) == pytest.approx(best.prob, rel=1e-4)
    assert first.level == answer.level


def test_rows_have_warnings(rows: list[Row]) -> None:
    first = next(row for row in rows if row.language == "german")
    assert first.warnings == "unknown tag FUT"


# --- warnings --------------------------------------------------------------------------------


def warnings_of(printed: str) -> list[str]:
    """Return the warnings of printed rows."""
    return [row.warnings for row in rows_of(printed)]


class TestWarningsOnTheStandardError:
    """Training of this model saw no b in German."""

    NO_B = "not seen in training for german: 'b'"

    @pytest.fixture
    def model(self, tmp_path: Path) -> str:
        seen = {"lang=german": frozenset({"+V", "a"}), "lang=english": frozenset({"+V", "a", "b"})}
        source = Vocabulary(VOCABULARIES.source.tokens, seen)
        vocabularies = Vocabularies(source, VOCABULARIES.target)
        return str(write_model(tmp_path / "model", 3, vocabularies))

    def test_are_not_there_without_a_reason(
        self, model: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert exit_status(inflect.main, ["english", "ab", "V", "--model", model]) == 0
        captured = capsys.readouterr()
        assert warnings_of(captured.out) == [""]
        assert captured.err == ""

    def test_have_the_warning_of_a_query(
        self, model: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert exit_status(inflect.main, ["german", "bab", "V", "--model", model]) == 0
        captured = capsys.readouterr()
        assert warnings_of(captured.out) == [f"{self.NO_B} (2)"]
        assert captured.err == f"warning: {self.NO_B} (2)\n"

    def test_have_the_first_warning_of_several_queries_and_their_number(
        self, model: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        type_lines(monkeypatch, "german ab V\n" * 2)
        assert exit_status(inflect.main, ["--model", model]) == 0
        captured = capsys.readouterr()
        assert warnings_of(captured.out) == [self.NO_B, self.NO_B]
        assert captured.err == f"warning: ab: {self.NO_B} (words with warnings: 2 of 2)\n"


def warnings_with_cells(
    folder: Path, cells: str, tags: str, capsys: pytest.CaptureFixture[str]
) -> str:
    """Query a model with a list of cells; return what is on the standard error."""
    model = write_model(folder / "model", 22)
    (model / "cells.tsv").write_text(cells)
    (model / LIST_NAME).unlink()
    write_list(model)
    assert exit_status(inflect.main, ["german", "ab", tags, "--model", str(model)]) == 0
    return capsys.readouterr().err


def test_tags_that_a_shell_cut_are_warned_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert warnings_with_cells(tmp_path, "german\tV;PST\t3\n", "V", capsys) == (
        "warning: no training source of german has the tag V alone; "
        'a shell needs quotes around tags, such as "V;PST"\n'
    )


@pytest.mark.parametrize(
    ("cells", "tags"),
    [
        pytest.param("german\tV;PST\t3\ngerman\tV\t1\n", "V", id="a cell"),
        pytest.param("german\tV;PST;SG\t3\n", "V;PST", id="quoted tags"),
        pytest.param("english\tV;PST\t3\n", "V", id="cells of another language"),
        pytest.param("damaged\n", "V", id="a damaged list of cells"),
    ],
)
def test_tags_that_no_shell_cut_are_not_warned_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], cells: str, tags: str
) -> None:
    assert warnings_with_cells(tmp_path, cells, tags, capsys) == ""


# --- command lines and files -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("command_line", "message"),
    [
        pytest.param(
            "ab V", 'expected LANGUAGE LEMMA TAGS, found 2 words; quote tags: "V;PST"', id="2 words"
        ),
        pytest.param(
            "english ab V --input f", "give a query or --input, not both", id="query and file"
        ),
        pytest.param(
            "english ab V --all --n_best 3", "--n_best: not allowed with", id="all and some"
        ),
        pytest.param("germann ab V", "germann'; did you mean 'german'?", id="misspelt language"),
    ],
)
def test_a_command_line_that_is_no_query_is_refused(
    inflection_model: Path, capsys: pytest.CaptureFixture[str], command_line: str, message: str
) -> None:
    arguments = [*command_line.split(), "--model", inflection_model]
    assert message in refusal(inflect.main, arguments)
    assert capsys.readouterr().out == ""


class TestJsonOfOneLanguageToAFile:
    """Model and beam are such that no number is trivial."""

    QUESTIONS = (Question("german", "ab", ("V", "PST")), Question("german", "b", ("V",)))

    @pytest.fixture
    def answers(self, tmp_path: Path) -> list[Inflection]:
        model = write_model(tmp_path / "model", 5, end=1)
        return list(Inflector([model], n_best=1, beam_size=1).answers(self.QUESTIONS))

    @pytest.fixture
    def records(
        self, answers: list[Inflection], tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> list[Any]:
        """What the command writes of the same questions, without their language."""
        (tmp_path / "in.tsv").write_text("ab\tV;PST\nb\tV\n", encoding="utf-8")
        files = ["--input", str(tmp_path / "in.tsv"), "--output", str(tmp_path / "out.jsonl")]
        options = ["--language", "german", "--json", "--beam_size", "1"]
        model = ["--model", str(tmp_path / "model")]
        assert exit_status(inflect.main, [*files, *options, *model]) == 0
        assert capsys.readouterr().out == ""
        return json_lines(tmp_path / "out.jsonl")

    def test_has_the_answers(self, records: list[Any], answers: list[Inflection]) -> None:
        assert records == [answer.to_dict() for answer in answers]

    @pytest.mark.parametrize("number", [0, 1])
    def test_has_these_keys(
        self, records: list[Any], answers: list[Inflection], number: int
    ) -> None:
        answer = answers[number]
        (form,) = answer.forms
        proof = answer.certificate
        assert records[number] == {
            "language": "german",
            "lemma": answer.question.lemma,
            "tags": [*answer.question.tags],
            "forms": [{"form": form.text, "prob": form.prob, "log_prob": form.log_prob}],
            "certificate": answer.level,
            "proven": proof.proven,
            "bound": proof.bound,
            "mass": proof.mass,
            "warnings": [],
        }

    def test_has_bound_and_mass_of_what_was_not_found(self, records: list[Any]) -> None:
        assert 0 < records[0]["bound"] < records[0]["mass"] < 0.99


@pytest.mark.parametrize(
    ("heading", "row", "options"),
    [
        pytest.param("lemma\ttags", "ab\tV", ["--language", "german"], id="one language"),
        pytest.param("language lemma tags", "german ab V", [], id="a column of languages"),
    ],
)
def test_a_heading_is_left_out(
    inflection_model: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    heading: str,
    row: str,
    options: list[str],
) -> None:
    type_lines(monkeypatch, f"{heading}\n{row}\n")
    arguments = ["--model", str(inflection_model), "--input", "-", *options]
    assert exit_status(inflect.main, arguments) == 0
    printed = capsys.readouterr()
    assert [line.split("\t")[:3] for line in printed.out.splitlines()] == [["german", "ab", "V"]]
    assert f"note: standard input: heading {heading!r} left out" in printed.err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            "english a V\nenglish a\n",
            "standard input:2: expected language lemma tags",
            id="no tags",
        ),
        pytest.param(
            "english\ta\t\n",
            "standard input:1: there are no tags, but english has some",
            id="no tags behind a tab",
        ),
        pytest.param("\n", "standard input: no queries", id="blank"),
        pytest.param(
            "english a V\nenglis a V\n",
            "standard input:2: the model knows no language 'englis'",
            id="misspelt language",
        ),
    ],
)
def test_bad_lines_are_refused_in_one_line(
    inflection_model: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    type_lines(monkeypatch, text)
    assert message in refusal(inflect.main, ["--model", inflection_model])


def test_a_person_is_answered_line_by_line(
    inflection_model: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Terminal(io.TextIOWrapper):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdin", Terminal(io.BytesIO(b"english a\nenglish a V\n")))
    assert exit_status(inflect.main, ["--model", str(inflection_model)]) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("english\ta\tV\t1\t")
    hint, line = captured.err.splitlines()
    assert hint == "type language lemma tags, such as V;PST for tags; Ctrl-D ends"
    assert line.startswith("inflect.py: expected language lemma tags")
