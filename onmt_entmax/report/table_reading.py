"""Read gold tables and predicted tables for `evaluate`."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from onmt_entmax.errors import UserError, counted
from onmt_entmax.files import read_lines
from onmt_entmax.strings.delimiters import guess_separator, guess_tag_separator
from onmt_entmax.strings.guessing import SAMPLE, guess_layout
from onmt_entmax.strings.own_headings import own_heading
from onmt_entmax.strings.shared_headings import shared_heading
from onmt_entmax.strings.tables import Layout, Row, readable_cells, rows_of
from onmt_entmax.strings.task import TAGS, TARGET, StringTask
from onmt_entmax.strings.units import Unit

_MOST_NAMED = 10  # bad rows that an error names


@dataclass(frozen=True)
class TableReading:
    """How gold tables and predicted tables of one evaluation are read.

    Attributes:
        task: units and columns of the tables.
        columns: columns of the gold tables that the user named; empty: the task or a heading names
            them.
        tags: tags that the model knows, by which tags are told from sources; empty without a model.
        languages: languages that the model knows, by which they are told from other words in names
            of files; empty without a model.
        guess: text on the columns and units that were guessed; empty if they come from a model.
    """

    task: StringTask
    columns: Sequence[str] = ()
    tags: frozenset[str] = frozenset()
    languages: frozenset[str] = frozenset()
    guess: str = ""


def guessed_reading(
    paths: Sequence[Path], columns: Sequence[str], separators: Mapping[str, str]
) -> TableReading:
    """Return how tables are read without a model, by the look of the gold tables.

    The first one shows columns and separators. The others only show whether all of them begin with
    the same heading. The first rows of predicted tables cannot show this: they may be equal to
    those of the gold tables because the predictions are right.

    Args:
        paths: paths of the gold tables.
        columns: columns of all gold tables; empty: a heading names them, or they are guessed.
        separators: separators of `target` and `tags`; others are guessed.

    Raises:
        UserError: the columns are unclear, or none has targets.
    """
    path, *_ = paths
    sample, *others = (list(islice(read_lines(path), SAMPLE)) for path in paths)
    layout = guess_layout(sample, str(path), columns)
    refuse_without_gold_target(path, layout)
    if not layout.heading:
        layout = replace(layout, heading=shared_heading(layout, sample, others))
    table = readable_cells(layout, filter(str.strip, sample))
    rows = table[1:] if layout.heading else table
    separator = separators.get(TARGET)
    if separator is None:  # an empty one divides characters
        separator = guess_separator(_cells_of(TARGET, layout.columns, rows))
    tag_separator = separators.get(TAGS)
    if tag_separator is None:
        tag_separator = guess_tag_separator(_cells_of(TAGS, layout.columns, rows))
    task = StringTask(
        layout.columns,
        heading=own_heading(layout),
        target=Unit.between(separator),
        tag_separator=tag_separator,
    )
    how = "" if TARGET in separators else " (guessed; --separator names another)"
    return TableReading(task, columns, guess=f"{path.name}: {layout}; target: {task.target}{how}")


def refuse_without_gold_target(path: Path, layout: Layout) -> None:
    """Refuse a gold table without a column of targets.

    Raises:
        UserError: names the columns that it has.
    """
    if TARGET not in layout.columns:
        raise UserError(f"{path}: {layout}; no targets, so nothing is right")


def _cells_of(column: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the cells of a column, if the table has it; rows of another length are left out."""
    if column not in columns:
        return []
    position = columns.index(column)
    return [cells[position] for cells in rows if len(cells) == len(columns)]


def table_rows(
    path: Path, layout: Layout, task: StringTask, language: str, *, needs_target: bool
) -> Iterator[Row]:
    """Yield the rows of a table, gold or predicted.

    Args:
        path: path of the table.
        layout: layout of the table.
        task: the units of its columns.
        language: language of rows without a column of languages.
        needs_target: whether each row must have a target.

    Raises:
        UserError: rows cannot be read; the message names the first.
    """
    bad = []
    lines = read_lines(path)
    for row in rows_of(lines, layout, task, language=language, needs_target=needs_target):
        if isinstance(row, Row):
            yield row
        else:
            bad.append(row)
    if bad:
        listed = "; ".join(f"line {row.number}: {row.reason}" for row in bad[:_MOST_NAMED])
        more = f" and {len(bad) - _MOST_NAMED:,} more" if len(bad) > _MOST_NAMED else ""
        raise UserError(f"{path}: {counted(len(bad), 'row')} cannot be read: {listed}{more}")
