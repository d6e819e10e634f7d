"""Numbers of training rows of each cell of inflection, counted, written to a file and read."""

import pytest

from onmt_entmax.errors import UserError
from onmt_entmax.strings.cells import cells_text, count_cells, parse_cells


def test_cells_with_layers_come_back() -> None:
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


def test_sources_without_language_or_tags_have_no_cell() -> None:
    sources = ["lang=x +V +PST a", "lang=x +V +PST b", "lang=x a", "a b", ""]
    assert count_cells(sources) == {"x": {("V", "PST"): 2}}


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
