"""Rows that models of the other rows checked: which are suspects, and how they are written."""

import json
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


def audited(
    form: str, answer: dict[str, Any], log_prob: float | None = None, copies: int = 1
) -> AuditedRow:
    """Return a row of a form, to which the model gives no probability by default."""
    return AuditedRow(Row(3, PAST_OF_AB, form, ()), INFLECTION, log_prob, answer, copies)


def excluded(form: str, best: str, copies: int = 1) -> AuditedRow:
    """Return a row whose form the model excludes, in the favour of a best one."""
    return audited(form, report("optimal", (best, 0.9)), copies=copies)


def admitted(form: str, copies: int = 1) -> AuditedRow:
    """Return a row whose form is the model's best one."""
    return audited(form, report("optimal", (form, 0.9)), log_prob=-0.1, copies=copies)


@pytest.mark.parametrize("copies", [1, 2])
def test_a_second_form_of_a_cell_is_a_variant(copies: int) -> None:
    """The table has it as often as the model's form, or more often."""
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


def test_a_row_is_written_with_all_that_the_model_admits() -> None:
    row = audited("aab", report("exhaustive", ("ab", 0.75), ("a", 0.25)))
    assert row.line() == "3\tab\taab\tV;PST\tab 0.75, a 0.25\texhaustive"


def test_a_space_of_a_form_is_written() -> None:
    row, space = audited("aab", report("exhaustive", ("ab_", 1.0))), " "
    assert row.line() == f"3\tab\taab\tV;PST\tab{space} 1\texhaustive"


@pytest.mark.parametrize(
    ("level", "finished"),
    [
        pytest.param("exhaustive", 3, id="three forms were found, two are listed"),
        pytest.param("optimal", 2, id="a search may not have found all"),
    ],
)
def test_dots_stand_for_forms_that_are_not_listed(level: str, finished: int) -> None:
    row = audited("aab", report(level, ("ab", 0.75), ("a", 0.2), finished=finished))
    assert row.line().endswith(f"\tab 0.75, a 0.2, ...\t{level}")


def test_the_certainty_is_the_probability_of_the_best_form() -> None:
    assert audited("aab", report("exhaustive", ("ab", 0.75), ("a", 0.25))).certainty == 0.75
