"""A cell whose only form is below the least probability that the user wants, in text, HTML and CSV.

Rounding may leave a form that is proven to be the only one just below probability 1.
"""

import pytest

from onmt_entmax.inflection import Inflection
from onmt_entmax.paradigm import as_csv, as_html, as_text
from tests.paradigm.cells import cell_of


@pytest.fixture
def cell() -> Inflection:
    """A cell whose only form has probability 0.999, and is left out."""
    return cell_of("ab", lemma="a", only=True, total=0.999).at_least(1)


def test_a_table_of_text_says_that_a_form_is_left_out(cell: Inflection) -> None:
    assert as_text([cell]) == (
        "noun\n"
        "    (none) ...\n"
        "\n"
        "1 form below 1 left out"
    )  # fmt: skip


def test_a_table_in_html_has_the_mark_of_further_forms(cell: Inflection) -> None:
    assert "(none) ..." in as_html([cell])


def test_a_line_of_csv_has_the_number_of_forms_left_out(cell: Inflection) -> None:
    """The columns are language, lemma, tags, form, probability, certificate, warnings, left out."""
    assert as_csv([cell]) == "x,a,N,,,only,,1\n"
