"""The lines that `inflect` writes for an answer: JSON, or columns between tabs."""

import json
import math

import pytest

from onmt_entmax.cli.inflection_lines import as_json, as_tsv
from onmt_entmax.inflector import Form, Inflection, Question
from tests.reports import certificate

# The second form is impossible; its log-probability is null in JSON, which has no infinity.
FORMS = (Form("a", math.log(0.5), 0.5), Form("b", -math.inf, 0.0))


def answer_with(*forms: Form) -> Inflection:
    """Return an answer with two warnings."""
    question = Question("german", "a b", ("V", "FUT"))
    warnings = ("unknown tag FUT", "mixed scripts")
    return Inflection(question, forms, certificate(level="optimal"), warnings, only=False)


@pytest.mark.parametrize(
    "forms", [pytest.param((), id="no form"), pytest.param(FORMS, id="two forms")]
)
def test_an_answer_can_be_read_from_its_line_of_json(forms: tuple[Form, ...]) -> None:
    answer = answer_with(*forms)
    assert json.loads(as_json(answer)) == answer.to_dict()


def test_each_form_has_a_line_of_columns() -> None:
    query, proof = "german\ta b\tV;FUT", "optimal\tunknown tag FUT; mixed scripts"
    assert as_tsv(answer_with(*FORMS)).splitlines() == [
        f"{query}\t1\ta\t0.5\t{proof}",
        f"{query}\t2\tb\t0\t{proof}",
    ]


def test_an_answer_without_a_form_has_a_line_without_rank_and_form() -> None:
    *_, rank, form, prob, _, _ = as_tsv(answer_with()).split("\t")
    assert (rank, form, prob) == ("", "", "0")


def test_a_tab_in_a_form_does_not_end_its_column() -> None:
    with_tab, without = (as_tsv(answer_with(Form(text, 0.0, 1.0))) for text in ("a\tb", "ab"))
    assert with_tab.count("\t") == without.count("\t")
