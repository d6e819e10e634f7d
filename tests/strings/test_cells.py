"""Cells of inflection as a file and back."""

import pytest

from onmt_entmax.errors import UserError
from onmt_entmax.strings.cells import cells_text, count_cells, parse_cells


def test_cells_with_layers_come_back() -> None:
    counts = {"tur": {("N", "NOM(PL;PSS(1,PL))"): 2, ("N", "SG"): 1}}
    assert parse_cells(cells_text(counts).splitlines(), "cells.tsv") == counts


@pytest.mark.parametrize("tag", ["V;PST", "V(PST", "V\tPST", "V\nPST"])
def test_cells_that_the_file_cannot_hold_are_left_out(tag: str) -> None:
    counts = {"tur": {(tag, "SG"): 2, ("N", "SG"): 1}}
    assert parse_cells(cells_text(counts).splitlines(), "cells.tsv") == {"tur": {("N", "SG"): 1}}


def test_numbers_of_equal_cells_are_added() -> None:
    lines = ["tur\tN;SG\t2", "tur\tN;PL\t1", "tur\tN;SG\t3"]
    assert parse_cells(lines, "cells.tsv") == {"tur": {("N", "SG"): 5, ("N", "PL"): 1}}


def test_sources_without_language_or_tags_have_no_cell() -> None:
    sources = ["lang=x +V +PST a", "lang=x +V +PST b", "lang=x a", "a b", ""]
    assert count_cells(sources) == {"x": {("V", "PST"): 2}}


@pytest.mark.parametrize("line", ["x\tV", "x y\tV\t1", "x\tV\tone"])
def test_a_line_of_another_form_is_named(line: str) -> None:
    with pytest.raises(UserError, match=r"cells\.tsv:2: expected language, tags and number"):
        parse_cells(["x\tV\t1", line], "cells.tsv")
