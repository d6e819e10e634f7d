"""Numbers of training rows of each cell of inflection, counted, written to a file and read."""

import pytest

from onmt_entmax.errors import UserError
from onmt_entmax.strings.cells import (
    Combinations,
    cells_text,
    count_cells,
    parse_cells,
    trained_order,
)

# --- counting --------------------------------------------------------------------------------


def test_sources_are_counted_by_their_tags() -> None:
    assert count_cells(["lang=x +V +PST a", "lang=x +V +PST b"]) == {"x": {("V", "PST"): 2}}


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("lang=x a", id="no tags"),
        pytest.param("+V a", id="no language"),
        pytest.param("a b", id="neither"),
        pytest.param("", id="empty"),
    ],
)
def test_a_source_without_language_or_tags_has_no_cell(source: str) -> None:
    assert count_cells([source]) == {}


# --- the order of tags -----------------------------------------------------------------------

ORDERS = {"x": {("V", "SG", "PST"): 1, ("V", "PST", "SG"): 2, ("N", "SG"): 5}}


def test_the_trained_order_of_tags_is_the_most_frequent_one() -> None:
    assert trained_order(ORDERS, "x", ("PST", "SG", "V")) == ("V", "PST", "SG")


@pytest.mark.parametrize(
    ("language", "tags"),
    [
        pytest.param("x", ("V", "SG", "PST"), id="trained in this order, too"),
        pytest.param("x", ("V", "SG"), id="never trained together"),
        pytest.param("x", ("SG", "N", "N"), id="one tag twice"),
        pytest.param("y", ("SG", "N"), id="another language"),
    ],
)
def test_there_is_no_other_order(language: str, tags: tuple[str, ...]) -> None:
    assert trained_order(ORDERS, language, tags) is None


# --- combinations of tags --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("language", "tags", "is_new"),
    [
        pytest.param("x", ("N", "PST"), True, id="each tag is known, but not both together"),
        pytest.param("x", ("V", "SG"), True, id="a part of a trained combination"),
        pytest.param("x", ("SG", "N"), False, id="trained in another order"),
        pytest.param("x", ("N", "DU"), False, id="an unknown tag"),
        pytest.param("y", ("N", "SG"), False, id="an unknown language"),
        pytest.param("x", (), False, id="no tags"),
    ],
)
def test_a_combination_is_new_if_its_tags_are_known(
    language: str, tags: tuple[str, ...], is_new: bool
) -> None:
    assert Combinations(ORDERS).is_new(language, tags) == is_new


# --- the file --------------------------------------------------------------------------------


def test_cells_with_layered_tags_come_back() -> None:
    counts = {"tur": {("N", "NOM(PL;PSS(1,PL))"): 2, ("N", "SG"): 1}}
    assert parse_cells(cells_text(counts).splitlines(), "cells.tsv") == counts


@pytest.mark.parametrize(
    "tag",
    [
        pytest.param("V;PST", id="the separator of tags"),
        pytest.param("V(PST", id="an open bracket"),
        pytest.param("V\tPST", id="a tab"),
        pytest.param("V\nPST", id="a line break"),
    ],
)
def test_a_cell_with_a_tag_that_the_file_cannot_hold_is_left_out(tag: str) -> None:
    counts = {"tur": {(tag, "SG"): 2, ("N", "SG"): 1}}
    assert parse_cells(cells_text(counts).splitlines(), "cells.tsv") == {"tur": {("N", "SG"): 1}}


def test_numbers_of_equal_cells_are_added() -> None:
    lines = ["tur\tN;SG\t2", "tur\tN;PL\t1", "tur\tN;SG\t3"]
    assert parse_cells(lines, "cells.tsv") == {"tur": {("N", "SG"): 5, ("N", "PL"): 1}}


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("x\tV", id="no number"),
        pytest.param("x y\tV\t1", id="a space in the language"),
        pytest.param("x\tV\tone", id="a number in words"),
    ],
)
def test_a_line_of_another_form_is_named(line: str) -> None:
    with pytest.raises(UserError, match=r"cells\.tsv:2: expected language, tags and number"):
        parse_cells(["x\tV\t1", line], "cells.tsv")
