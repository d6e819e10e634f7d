"""What `audit` does with rows: which it holds out together, suspects, and writes."""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from onmt_entmax.cli import audit
from onmt_entmax.cli.audited_rows import AuditedRow, excluded_rows, surest_first
from onmt_entmax.errors import UserError
from onmt_entmax.strings.tables import Row
from onmt_entmax.strings.task import INFLECTION, Query, StringTask
from tests.cli.tables import write_table
from tests.in_process import exit_status, success
from tests.inflection_models import write_model
from tests.reports import record

# --- suspects ---


def excluded(form: str, best: str, copies: int = 1) -> AuditedRow:
    """Return a row whose form the model excludes, in the favour of a best one."""
    answer = {"hypotheses": [{"text": " ".join(best), "prob": 0.9}], "certificate": "optimal"}
    row = Row(1, Query("ab", ("V", "PST")), form, ())
    return AuditedRow(row, INFLECTION, log_prob=None, record=answer, copies=copies)


def admitted(form: str, copies: int = 1) -> AuditedRow:
    """Return another row of the same cell, whose form the model has."""
    answer = {"hypotheses": [{"text": " ".join(form), "prob": 0.9}], "certificate": "optimal"}
    row = Row(2, Query("ab", ("V", "PST")), form, ())
    return AuditedRow(row, INFLECTION, log_prob=-0.1, record=answer, copies=copies)


@pytest.mark.parametrize("copies", [1, 2])
def test_a_second_form_of_a_cell_is_a_variant(copies: int) -> None:
    """If the table has it as often as the form of the model, or more often."""
    second = excluded("abt", best="abed", copies=copies)
    assert excluded_rows([second, admitted("abed")]) == ([], [second])
    assert surest_first([second, admitted("abed")]) == []


@pytest.mark.parametrize(
    ("best", "others"),
    [
        pytest.param("abed", [admitted("abed", copies=2)], id="the table prefers the model's form"),
        pytest.param("abd", [admitted("abed")], id="the table lacks the model's form"),
        pytest.param("abed", [], id="the cell has no other form"),
    ],
)
def test_other_excluded_forms_are_suspects(best: str, others: list[AuditedRow]) -> None:
    suspect = excluded("abt", best)
    assert excluded_rows([suspect, *others]) == ([suspect], [])
    assert surest_first([suspect, *others]) == [suspect]


@pytest.fixture
def exhaustive() -> AuditedRow:
    """A row of whose three possible forms two are listed, one with a space at its end."""
    hypotheses = [{"text": "a b ▁", "prob": 0.75}, {"text": "a", "prob": 0.25}]
    answer = {"hypotheses": hypotheses, "certificate": "exhaustive", "finished": 3}
    row = Row(3, Query("ab", ("V", "PST")), "aab", ())
    return AuditedRow(row, INFLECTION, log_prob=None, record=answer)


def test_a_row_is_written_with_all_that_the_model_admits(exhaustive: AuditedRow) -> None:
    assert exhaustive.line() == "3\tab\taab\tV;PST\tab  0.75, a 0.25, ...\texhaustive"


def test_the_certainty_is_the_probability_of_the_best_form(exhaustive: AuditedRow) -> None:
    assert exhaustive.certainty == 0.75


def test_forms_that_a_search_did_not_find_may_be_admitted_too(exhaustive: AuditedRow) -> None:
    """So dots follow, even if all that it found are listed."""
    optimal = exhaustive.record | {"certificate": "optimal", "finished": 2}
    assert replace(exhaustive, record=optimal).line().endswith(", ...\toptimal")


# --- rows that are held out together ---


class Part(NamedTuple):
    """The rows of which a model is trained, and those that it checks."""

    train: Sequence[Row]
    held_out: Sequence[Row]


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> list[Part]:
    """The parts of an audit; nothing is trained, and nothing found."""
    parts = []

    def check_part(
        folder: Path,
        train: Sequence[Row],
        held_out: Sequence[Row],
        task: StringTask,
        options: argparse.Namespace,
        training_flags: Sequence[str],
    ) -> None:
        parts.append(Part(train, held_out))
        folder.mkdir(parents=True)
        empty = record("lang=x", "none", bound=1.0)
        (folder / "dev.report.jsonl").write_text(f"{empty}\n" * len(held_out))
        (folder / "scores.jsonl").write_text('{"log_prob": -1.0}\n' * len(held_out))

    monkeypatch.setattr(audit, "check_part", check_part)
    return parts


def cell_of(row: Row) -> tuple[str, frozenset[str]]:
    """Return lemma and tags, in whichever order they stand."""
    return row.query.source, frozenset(row.query.tags)


class Audited(NamedTuple):
    """An audit of rows that stand twice, those of the past once more with their tags turned."""

    folds: int
    parts: list[Part]
    to_look_at: int
    """Rows that it lists for a person, of at most a thousand."""


STEMS = "bcdfghjk"
ENDINGS = (("ed", "PST"), ("t", "PST"), ("s", "PRS"))
ROWS = [f"{stem}a\t{stem}{end}\tV;{tag}" for stem in STEMS for end, tag in ENDINGS]
TURNED = [row.replace("V;PST", "PST;V") for row in ROWS if row.endswith("PST")]
NUMBERS = range(1, len(ROWS) + 1)
TURNED_NUMBERS = range(2 * len(ROWS) + 1, 2 * len(ROWS) + len(TURNED) + 1)


@pytest.fixture(params=[2, 5])
def audited(request: pytest.FixtureRequest, tmp_path: Path, parts: list[Part]) -> Audited:
    table = write_table(tmp_path / "table", *ROWS, *ROWS, *TURNED)
    words = [table, "--out", tmp_path / "out", "--folds", request.param, "--ask", 1000]
    assert exit_status(audit.main, [*map(str, words)]) == 0
    listed = (tmp_path / "out" / "ask.tsv").read_text().splitlines()
    return Audited(request.param, parts, len(listed))


def test_there_are_as_many_parts_as_asked_for(audited: Audited) -> None:
    assert len(audited.parts) == audited.folds


def test_each_different_row_is_held_out_once(audited: Audited) -> None:
    numbers = sorted(row.number for part in audited.parts for row in part.held_out)
    assert numbers == [*NUMBERS, *TURNED_NUMBERS]
    assert audited.to_look_at == len(numbers)


def test_forms_of_a_cell_are_held_out_together(audited: Audited) -> None:
    for part in audited.parts:
        assert not set(map(cell_of, part.train)) & set(map(cell_of, part.held_out))


def test_all_rows_of_other_cells_are_trained_on(audited: Audited) -> None:
    """Copies too."""
    rows = {row.number: row for part in audited.parts for row in (*part.train, *part.held_out)}
    assert rows.keys() == set(range(1, 2 * len(ROWS) + len(TURNED) + 1))
    for part in audited.parts:
        held_out = set(map(cell_of, part.held_out))
        others = {number for number, row in rows.items() if cell_of(row) not in held_out}
        assert {row.number for row in part.train} == others


# --- rows that mix scripts ---


class Mixed(NamedTuple):
    """The audit of a table in which the last two of three rows mix scripts."""

    rows: list[list[str]]
    """Columns of the list of these rows."""
    printed: str


@pytest.fixture
def mixed(tmp_path: Path, parts: list[Part]) -> Mixed:
    model = write_model(tmp_path / "model", 8, end=3)
    rows = ["Lemma\tForm\tMSD", "ab\tab\tV", "cа\tcа\tV", "ab\tаб\tV"]
    table = write_table(tmp_path / "table", *rows)
    options = ["--out", tmp_path / "out", "--model", model, "--language", "german"]
    printed = success(audit.main, [table, *options])
    listed = (tmp_path / "out" / "scripts.tsv").read_text("utf-8").splitlines()
    return Mixed([row.split("\t") for row in listed], printed)


def test_rows_that_mix_scripts_are_listed(mixed: Mixed) -> None:
    """By their lines, below a heading."""
    assert [row[:2] for row in mixed.rows] == [["3", "cа"], ["4", "ab"]]


def test_a_mixture_of_scripts_is_explained(mixed: Mixed) -> None:
    inside, across = (row[-1] for row in mixed.rows)
    assert inside == "'cа' mixes scripts: Latin with Cyrillic а (U+0430)"
    assert across == "'аб' is in Cyrillic, its lemma Latin"


def test_rows_that_mix_scripts_are_counted(mixed: Mixed) -> None:
    assert "scripts.tsv: 2 of 3 rows mix scripts\n" in mixed.printed


def test_how_the_table_is_read_is_printed(mixed: Mixed) -> None:
    assert "table, 3 rows: columns source, target, tags between tabs; heading " in mixed.printed


# --- scores ---


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        pytest.param(
            '{"log_prob": -1.0}\n{"log_p',
            "scores.jsonl:2: cut or damaged; delete the file",
            id="half a line",
        ),
        pytest.param(
            '{"log_prob": -1.0}\n',
            "scores.jsonl: cut or damaged, 1 line, not 2; delete the file",
            id="too few lines",
        ),
        pytest.param('{"log_prob": "x"}\n{}\n', "scores.jsonl:1: cut or damaged", id="text"),
        pytest.param('{"log_prob": -1.0}\n{}\n', "scores.jsonl:2: cut or damaged", id="no key"),
        pytest.param("[]\n[]\n", "scores.jsonl:1: cut or damaged", id="lists"),
    ],
)
def test_scores_that_are_cut_are_one_line(tmp_path: Path, scores: str, message: str) -> None:
    (tmp_path / "scores.jsonl").write_text(scores)
    with pytest.raises(UserError, match=f"^{tmp_path}/{message}"):
        audit.read_scores(tmp_path / "scores.jsonl", 2)


def test_scores_are_numbers_or_null(tmp_path: Path) -> None:
    (tmp_path / "scores.jsonl").write_text('{"log_prob": -1.5}\n{"log_prob": null}\n')
    assert audit.read_scores(tmp_path / "scores.jsonl", 2) == [-1.5, None]
