"""Guesses about the columns of tables, for any task and for that of a model."""

import pytest

from onmt_entmax.strings.guessing import guess_layout
from onmt_entmax.strings.tables import TableError
from onmt_entmax.strings.task import StringTask
from onmt_entmax.strings.units import Unit

INFLECTED = ["draw\tV;PST\tdrew", "go\tV;PST\twent", "walk\tV;PRS\twalks"]
PHONES = ["ploaie\tp lʷ a j e", "abil\ta b i l", "an\ta n"]
TASK = StringTask(("source", "tags", "target"))
PRONUNCIATION = StringTask(target=Unit.between(" "))


# --- columns ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "columns"),
    [
        pytest.param(INFLECTED, ("source", "tags", "target"), id="tags second"),
        pytest.param(["draw\tdrew\tV;PST"] * 2, ("source", "target", "tags"), id="tags last"),
        pytest.param(
            ["draw\tdrew\tpos=V,tense=PST"] * 2,
            ("source", "target", "tags"),
            id="tags with names",
        ),
        pytest.param(
            ["at\tata\tN|GEN|SG", "ev\tevin\tN|GEN"],
            ("source", "target", "tags"),
            id="tags between strokes",
        ),
        pytest.param(PHONES, ("source", "target"), id="two columns"),
    ],
)
def test_columns_are_guessed(lines: list[str], columns: tuple[str, ...]) -> None:
    layout = guess_layout(lines, "x")
    assert (layout.columns, layout.guessed) == (columns, True)


def test_the_description_of_a_layout_says_that_it_is_guessed() -> None:
    assert str(guess_layout(PHONES, "x")) == (
        "columns source, target between tabs (guessed; --columns names them)"
    )


@pytest.mark.parametrize(
    "lines", [["read\treads\t17"], ["a\tb\tc\td"]], ids=["a count", "four columns"]
)
def test_unclear_columns_are_refused(lines: list[str]) -> None:
    with pytest.raises(TableError, match=r"x: unclear .* --columns"):
        guess_layout(lines, "x")


def test_an_unclear_table_has_the_fallback_columns() -> None:
    fallback = ("source", "target", "tags")
    layout = guess_layout(["take\ttook\tpast", "a\ta\tplural"], "x", fallback=fallback)
    assert (layout.columns, layout.guessed) == (fallback, True)


def test_tags_in_the_first_column_exclude_the_fallback_columns() -> None:
    lines = ["V;PST\ttake\ttook", "V;3;SG\ttake\ttakes"]
    with pytest.raises(TableError, match="unclear what its 3 columns are"):
        guess_layout(lines, "x", fallback=("source", "target", "tags"))


def test_a_line_without_columns_is_not_a_table() -> None:
    with pytest.raises(TableError, match="as in 'a b'; write a tab between them"):
        guess_layout(["a b"], "x")


@pytest.mark.parametrize(
    ("lines", "columns"),
    [
        pytest.param(["an\ta n\t", "ab\ta b\t"], ("source", "target", "-"), id="one column"),
        pytest.param(["an\ta n\t\t"] * 2, ("source", "target", "-", "-"), id="two columns"),
    ],
)
@pytest.mark.parametrize("task", [None, PRONUNCIATION], ids=["no model", "a model"])
def test_last_columns_without_text_are_left_out(
    lines: list[str], columns: tuple[str, ...], task: StringTask | None
) -> None:
    assert guess_layout(lines, "x", task=task).columns == columns


def test_a_file_whose_lines_end_with_cr_alone_is_refused() -> None:
    with pytest.raises(TableError, match="x: its lines end with CR alone"):
        guess_layout(["an\ta n\rab\ta b"], "x")


def test_a_line_without_columns_is_shown_in_place_of_a_comment() -> None:
    with pytest.raises(TableError, match="as in 'AN  AE1 N'; write a tab"):
        guess_layout([";;; a comment", "AN  AE1 N"], "x")


# --- tables for a model -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "columns"),
    [
        pytest.param(["an\t", "ab\t"], ("source", "target"), id="empty targets"),
        pytest.param(["an", "ab"], ("source",), id="no second column"),
        pytest.param(["an\ta n", "ab\ta b"], ("source", "target"), id="targets"),
    ],
)
def test_a_table_for_a_model_may_be_without_targets(
    lines: list[str], columns: tuple[str, ...]
) -> None:
    assert guess_layout(lines, "x", task=PRONUNCIATION).columns == columns


def test_a_table_for_a_model_has_its_other_columns() -> None:
    with pytest.raises(TableError, match="x: 1 column, not 3"):
        guess_layout(["draw"], "x", task=TASK)


def test_a_table_for_a_model_with_tags_may_be_without_targets() -> None:
    layout = guess_layout(["draw\tV;PST"], "x", task=TASK)
    assert layout.columns == ("source", "tags")
