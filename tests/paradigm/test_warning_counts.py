"""Warnings of many cells: each is named once, with the number of its cells."""

from onmt_entmax.paradigm import WarningCounts
from tests.paradigm.cells import cell_of


def counts_of(*warnings: tuple[str, ...]) -> WarningCounts:
    """Return the counts of cells with these warnings; their lemmas are w0, w1 and so on."""
    counts = WarningCounts()
    for number, texts in enumerate(warnings):
        counts.add(cell_of(lemma=f"w{number}", warnings=texts))
    return counts


def test_all_cells_are_counted() -> None:
    assert counts_of(("a", "b"), (), ("a",)).cells == 3


def test_cells_with_warnings_are_counted() -> None:
    assert counts_of(("a", "b"), (), ("a",)).with_warnings == 2


def test_a_warning_is_named_with_its_first_lemma() -> None:
    assert counts_of((), ("a",), ("a",)).lines() == ["w1: a (2 of 3 cells)"]


def test_cells_whose_warnings_are_not_among_the_first_five_are_counted_together() -> None:
    counts = counts_of(("a",), ("b",), ("c",), ("d",), ("e",), ("f",), ("a", "g"))
    assert counts.lines() == [
        "w0: a (2 of 7 cells)",
        *(f"w{number}: {warning} (1 of 7 cells)" for number, warning in enumerate("bcde", 1)),
        "others (2 of 7 cells)",
    ]


def test_a_cell_with_several_other_warnings_is_counted_once() -> None:
    counts = counts_of(("a", "b", "c", "d"), ("e", "f", "g"))
    assert counts.lines() == [
        *(f"w0: {warning} (1 of 2 cells)" for warning in "abcd"),
        "w1: e (1 of 2 cells)",
        "others (1 of 2 cells)",
    ]
