"""Cells of a paradigm as text: probabilities, and cells that take several lines."""

import math

import pytest

from onmt_entmax.inflection import Form, Inflection, Question
from onmt_entmax.paradigm.texts import as_text, percent
from tests.reports import certificate

WHOLE_SUPPORT = certificate(proven=9, mass=1.0)


@pytest.mark.parametrize(
    ("prob", "text"),
    [
        (1e-9, "<1%"),
        (0.005, "<1%"),  # not 0%
        (0.0051, "1%"),
        (0.5, "50%"),
        (0.9949, "99%"),
        (0.995, ">99%"),  # not 100%
        (1 - 1e-9, ">99%"),
    ],
)
def test_a_form_among_several_has_neither_0_nor_100_percent(prob: float, text: str) -> None:
    assert percent(prob) == text


def cell_of(*texts: str) -> Inflection:
    """Return the cell of a form for each text, all equally probable."""
    prob = 1 / len(texts)
    forms = tuple(Form(text, math.log(prob), prob) for text in texts)
    return Inflection(Question("x", "lemma", ("N",)), forms, WHOLE_SUPPORT, (), only=False)


def test_a_narrow_table_has_a_form_a_line() -> None:
    assert as_text([cell_of("aa", "bb")], width=10).splitlines()[1:] == [
        "    aa 50% /",
        "    bb 50%",
    ]


def test_a_form_that_has_a_slash_is_not_divided() -> None:
    assert as_text([cell_of("a / b")], width=6).splitlines()[1:] == ["    a / b >99%"]
