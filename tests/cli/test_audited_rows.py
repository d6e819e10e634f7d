"""Rows that an audit has checked: which are suspects, and how they are written."""

import json
import math
from typing import Any

import pytest

from onmt_entmax.cli.audited_rows import AuditedRow, excluded_rows
from onmt_entmax.strings.tables import Row
from onmt_entmax.strings.task import INFLECTION, Query
from tests.reports import record

PAST_OF_AB = Query("ab", ("V", "PST"))  # the cell of all rows here


def report(level: str, *forms: tuple[str, float], **more: object) -> dict[str, Any]:
    """Return the record of a report on the cell.

    Args:
        level: level of the certificate.
        forms: with their probabilities; _ is a space.
        more: other values of the record.
    """
    hypotheses = ((" ".join(form.replace("_", "▁")), prob) for form, prob in forms)
    answer: dict[str, Any] = json.loads(record("a b V PST", level, *hypotheses, **more))
    return answer


def excluded_row(form: str, answer: dict[str, Any], copies: int = 1) -> AuditedRow:
    """Return a row of the cell whose form the model excludes.

    Args:
        form: the form in the table.
        answer: the model's report on the cell.
        copies: how often the table has the row.
    """
    return AuditedRow(Row(3, PAST_OF_AB, form, ()), INFLECTION, None, answer, copies)


def excluded(form: str, best: str, copies: int = 1) -> AuditedRow:
    """Return a row whose form the model excludes; its best form is another."""
    return excluded_row(form, report("optimal", (best, 0.9)), copies)


def admitted(form: str, copies: int = 1) -> AuditedRow:
    """Return a row whose form is the model's best one."""
    row, answer = Row(3, PAST_OF_AB, form, ()), report("optimal", (form, 0.9))
    return AuditedRow(row, INFLECTION, math.log(0.9), answer, copies)


# --- which rows are suspects ---


@pytest.mark.parametrize("copies", [1, 2])
def test_a_second_form_of_a_cell_is_a_variant(copies: int) -> None:
    """The table has the second form as often as the model's, or more often."""
    second = excluded("abt", best="abed", copies=copies)
    assert excluded_rows([second, admitted("abed")]) == ([], [second])


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


# --- how they are written ---


def test_a_row_is_written_with_all_forms_that_the_model_admits() -> None:
    row = excluded_row("aab", report("exhaustive", ("ab", 0.75), ("a", 0.25)))
    assert row.line() == "3\tab\taab\tV;PST\tab 0.75, a 0.25\texhaustive"


def test_a_space_at_the_end_of_a_form_is_written() -> None:
    row = excluded_row("aab", report("exhaustive", ("ab_", 1.0)))
    *_, admitted_forms, _level = row.line().split("\t")
    assert admitted_forms == "ab " + " 1"  # the form and its probability


@pytest.mark.parametrize(
    ("level", "finished"),
    [
        pytest.param("exhaustive", 3, id="three forms were found, two are listed"),
        pytest.param("optimal", 2, id="a search may not have found all"),
    ],
)
def test_dots_stand_for_forms_that_are_not_listed(level: str, finished: int) -> None:
    row = excluded_row("aab", report(level, ("ab", 0.75), ("a", 0.2), finished=finished))
    assert row.line().endswith(f"\tab 0.75, a 0.2, ...\t{level}")


def test_the_certainty_is_the_probability_of_the_best_form() -> None:
    row = excluded_row("aab", report("exhaustive", ("ab", 0.75), ("a", 0.25)))
    assert row.certainty == 0.75
