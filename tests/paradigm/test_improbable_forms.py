"""A cell whose only form is left out as improbable, in each format.

Rounding may leave a form that is proven to be the only one just below probability 1.
"""

import math
from dataclasses import replace

import pytest

from onmt_entmax.inflection import Form, Inflection
from onmt_entmax.paradigm import as_csv, as_html, as_text
from tests.paradigm.cells import cell_of


@pytest.fixture
def cell() -> Inflection:
    """A cell whose only form has probability 0.999, and is left out."""
    form = Form("ab", math.log(0.999), 0.999)
    return replace(cell_of(only=True, lemma="a"), forms=(form,)).at_least(1)


def test_a_table_has_a_mark(cell: Inflection) -> None:
    assert as_text([cell]) == (
        "noun\n"
        "    (none) ...\n"
        "\n"
        "1 form below 1 left out"
    )  # fmt: skip


def test_a_page_has_a_mark(cell: Inflection) -> None:
    assert "(none) ..." in as_html([cell])


def test_a_csv_line_has_a_count(cell: Inflection) -> None:
    """The columns are language, lemma, tags, form, probability, certificate, warnings, left out."""
    assert as_csv([cell]) == "x,a,N,,,only,,1\n"
