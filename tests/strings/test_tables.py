"""Rows of tables: what a line says, and which lines are bad."""

import csv
import io
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onmt_entmax.strings.guessing import guess_layout
from onmt_entmax.strings.tables import BadRow, Layout, Row, rows_of
from onmt_entmax.strings.task import Query, StringTask
from onmt_entmax.strings.units import Unit

INFLECTED = ["draw\tV;PST\tdrew", "go\tV;PST\twent", "walk\tV;PRS\twalks"]
TASK = StringTask(("source", "tags", "target"))
PRONUNCIATION = StringTask(target=Unit.between(" "))
CELL = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1)
LAYERS = st.sampled_from(["V", "PST", "NOM(3,SG)", "NOM(PL;PSS(1,PL))"])
TAGS = st.lists(LAYERS, min_size=1).map(tuple)
QUERIES = st.builds(Query, CELL.filter(str.strip), TAGS, st.just(""))


def written(rows: list[list[str]], separator: str) -> list[str]:
    """Return the lines of a table, with commas as Python writes a CSV file."""
    if separator == "\t":
        return ["\t".join(cells) for cells in rows]
    file = io.StringIO()
    csv.writer(file).writerows(rows)
    return file.getvalue().splitlines()


@pytest.mark.parametrize("separator", [",", "\t"], ids=["commas", "tabs"])
@given(
    queries=st.lists(QUERIES, min_size=1),
    columns=st.sampled_from([*permutations(("source", "target", "tags"))]),
)
def test_a_table_comes_back_in_any_order_of_columns(
    queries: list[Query], columns: tuple[str, ...], separator: str
) -> None:
    content = []
    for query in queries:
        cells = {"source": query.source, "target": f"{query.source}x", "tags": ";".join(query.tags)}
        content.append([cells[column] for column in columns])
    layout = Layout(columns, separator)
    read = rows_of(written(content, separator), layout, StringTask(columns))
    assert list(read) == [
        Row(number, query, f"{query.source}x", tuple(cells))
        for number, (query, cells) in enumerate(zip(queries, content, strict=True), 1)
    ]


def read_rows(
    lines: list[str], task: StringTask = TASK, needs_target: bool = True
) -> list[Row | BadRow]:
    """Return the rows of lines with the columns of a task."""
    layout = guess_layout(lines, "x", task.columns)
    return list(rows_of(lines, layout, task, needs_target=needs_target))


def test_rows_have_source_tags_and_target() -> None:
    first = read_rows(INFLECTED)[0]
    assert first == Row(1, Query("draw", ("V", "PST")), "drew", ("draw", "V;PST", "drew"))


def test_a_column_has_the_language() -> None:
    task = StringTask(("language", "source", "target"))
    (row,) = read_rows(["deu\ta\tb"], task)
    assert isinstance(row, Row)
    assert row.query.language == "deu"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("draw\tdrew", "expected 3 columns, source, tags, target; found 2"),
        ("\tV\tdrew", "source is empty"),
        ("draw\tV;;PST\tdrew", "tags has an empty tag: 'V;;PST'"),
        ("draw\tV\t", "target is empty"),
    ],
)
def test_a_bad_row_says_why(line: str, reason: str) -> None:
    assert read_rows([*INFLECTED, line])[-1] == BadRow(4, reason, line)


def test_a_target_with_an_empty_symbol_is_bad() -> None:
    bad = read_rows(["an\ta  n"], PRONUNCIATION)[0]
    assert isinstance(bad, BadRow)
    assert bad.reason == "target has an empty symbol: ' ' at an end, or twice in a row"


def test_a_target_may_be_missing_when_it_is_asked_for() -> None:
    assert isinstance(read_rows(["draw\tV\t"], needs_target=False)[0], Row)


QUOTED = '"a,b","c ""d"""'


def test_commas_divide_a_table_without_tabs() -> None:
    layout = guess_layout([QUOTED, "e,f"], "x")
    assert layout.cells(QUOTED) == ("a,b", 'c "d"')


def test_cells_are_written_as_they_were() -> None:
    layout = Layout(("source", "target"), ",")
    assert layout.text(layout.cells(QUOTED)) == QUOTED
