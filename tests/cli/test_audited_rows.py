"""Rows that models of the other rows checked: which are suspects, and how they are written."""

from dataclasses import replace

import pytest

from onmt_entmax.cli.audited_rows import AuditedRow, excluded_rows, surest_first
from onmt_entmax.strings.tables import Row
from onmt_entmax.strings.task import INFLECTION, Query


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
