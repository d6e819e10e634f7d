"""Rows of tables: what a line says, and which lines are bad."""

import csv
import io
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onmt_entmax.strings.tables import BadRow, Layout, Row, rows_of
from onmt_entmax.strings.task import Query, StringTask
from onmt_entmax.strings.units import Unit

TASK = StringTask(("source", "tags", "target"))
PRONUNCIATION = StringTask(target=Unit.between(" "))


def read_line(line: str, task: StringTask = TASK, *, needs_target: bool = True) -> Row | BadRow:
    """Return the row of the only line of a table with the columns of a task."""
    (row,) = rows_of([line], Layout(task.columns), task, needs_target=needs_target)
    return row


# --- good rows -------------------------------------------------------------------------------


def test_a_row_has_source_tags_and_target() -> None:
    row = read_line("draw\tV;PST\tdrew")
    assert row == Row(1, Query("draw", ("V", "PST")), "drew", ("draw", "V;PST", "drew"))


def test_a_column_has_the_language() -> None:
    row = read_line("deu\ta\tb", StringTask(("language", "source", "target")))
    assert row == Row(1, Query("a", language="deu"), "b", ("deu", "a", "b"))


def test_a_row_without_a_target_is_good_if_none_is_needed() -> None:
    row = read_line("draw\tV\t", needs_target=False)
    assert row == Row(1, Query("draw", ("V",)), "", ("draw", "V", ""))


# --- bad rows --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        pytest.param(
            "draw\tdrew",
            "expected 3 columns, source, tags, target; found 2",
            id="a column is missing",
        ),
        pytest.param("\tV\tdrew", "source is empty", id="no source"),
        pytest.param("draw\tV;;PST\tdrew", "tags has an empty tag: 'V;;PST'", id="an empty tag"),
        pytest.param("draw\tV\t", "target is empty", id="no target"),
    ],
)
def test_a_bad_row_says_why(line: str, reason: str) -> None:
    assert read_line(line) == BadRow(1, reason, line)


def test_a_target_with_an_empty_symbol_is_bad() -> None:
    line = "an\ta  n"
    reason = "target has an empty symbol: ' ' at an end, or twice in a row"
    assert read_line(line, PRONUNCIATION) == BadRow(1, reason, line)


def test_a_bad_row_has_the_number_of_its_line() -> None:
    """Blank lines count."""
    lines = ["draw\tV\tdrew", "", "go\tV\t"]
    _, bad = rows_of(lines, Layout(TASK.columns), TASK)
    assert bad == BadRow(3, "target is empty", "go\tV\t")


# --- tabs and commas -------------------------------------------------------------------------

QUOTED = '"a,b","c ""d"""'
WITH_COMMAS = Layout(("source", "target"), ",")


def test_quotes_hold_the_cells_of_a_csv_file_together() -> None:
    assert WITH_COMMAS.cells(QUOTED) == ("a,b", 'c "d"')


def test_cells_are_written_as_they_were() -> None:
    assert WITH_COMMAS.text(WITH_COMMAS.cells(QUOTED)) == QUOTED


def csv_lines(rows: list[list[str]]) -> list[str]:
    """Return the lines that Python's own writer of CSV files writes."""
    file = io.StringIO()
    csv.writer(file).writerows(rows)
    return file.getvalue().splitlines()


# Texts that a line can hold; sources are not blank.
CELLS = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1)
TAGS = st.lists(st.sampled_from(["V", "PST", "NOM(3,SG)", "NOM(PL;PSS(1,PL))"]), min_size=1)
QUERIES = st.builds(Query, CELLS.filter(str.strip), TAGS.map(tuple), st.just(""))


@pytest.mark.parametrize("delimiter", [",", "\t"], ids=["commas", "tabs"])
@given(
    queries=st.lists(QUERIES, min_size=1),
    columns=st.sampled_from([*permutations(("source", "target", "tags"))]),
)
def test_a_table_comes_back_in_any_order_of_columns(
    queries: list[Query], columns: tuple[str, ...], delimiter: str
) -> None:
    content = []
    for query in queries:
        cells = {"source": query.source, "target": f"{query.source}x", "tags": ";".join(query.tags)}
        content.append([cells[column] for column in columns])
    lines = csv_lines(content) if delimiter == "," else ["\t".join(cells) for cells in content]
    read = rows_of(lines, Layout(columns, delimiter), StringTask(columns))
    assert list(read) == [
        Row(number, query, f"{query.source}x", tuple(cells))
        for number, (query, cells) in enumerate(zip(queries, content, strict=True), 1)
    ]
