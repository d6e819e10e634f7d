"""Cells of a paradigm as text: probabilities, and tables as wide as a terminal."""

import pytest

from onmt_entmax.paradigm.texts import as_text, percent, terminal_width
from tests.paradigm.cells import cell_of


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


# --- the width of a terminal: forms of a wide cell take several lines ---


def test_a_table_that_fits_has_all_forms_of_a_cell_on_one_line() -> None:
    assert as_text([cell_of("aa", "bb")], width=len("    aa 50% / bb 50%")) == (
        "noun\n"
        "    aa 50% / bb 50%"
    )  # fmt: skip


def test_a_table_one_column_too_wide_is_folded() -> None:
    assert as_text([cell_of("aa", "bb")], width=len("    aa 50% / bb 50%") - 1) == (
        "noun\n"
        "    aa 50% /\n"
        "    bb 50%"
    )  # fmt: skip


def test_a_line_has_as_many_forms_as_fit() -> None:
    assert as_text([cell_of("aa", "bb", "cc")], width=len("    aa 33% / bb 33% /")) == (
        "noun\n"
        "    aa 33% / bb 33% /\n"
        "    cc 33%"
    )  # fmt: skip


def test_a_line_too_narrow_for_any_form_has_one() -> None:
    assert as_text([cell_of("aa", "bb")], width=1) == (
        "noun\n"
        "    aa 50% /\n"
        "    bb 50%"
    )  # fmt: skip


def test_the_name_of_a_row_is_on_its_first_line() -> None:
    cell = cell_of("aa", "bb", tags="N;NOM;SG")
    assert as_text([cell], width=len("  nominative  aa 50% /")) == (
        "noun\n"
        "              singular\n"
        "  nominative  aa 50% /\n"
        "              bb 50%"
    )  # fmt: skip


def test_a_form_that_has_a_slash_is_not_divided() -> None:
    assert as_text([cell_of("a / b")], width=6) == (
        "noun\n"
        "    a / b >99%"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "width"),
    [
        pytest.param("Haus", 4, id="letters"),
        pytest.param("e\u0301", 1, id="accent"),
        pytest.param("\u0915\u0941", 1, id="Devanagari mark below"),
        pytest.param("\u0915\u093e", 2, id="Devanagari sign beside"),
        pytest.param("\u05d0\u05b8", 1, id="Hebrew vowel"),
        pytest.param("\u4e00", 2, id="Chinese"),
        pytest.param("a\u200db", 2, id="joiner"),
    ],
)
def test_a_text_takes_so_many_columns_of_a_terminal(text: str, width: int) -> None:
    assert terminal_width(text) == width
