"""Gold tables of strings: the targets that count as right for each query."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from onmt_entmax.errors import UserError, counted
from onmt_entmax.files import read_lines
from onmt_entmax.strings.delimiters import guess_separator, guess_tag_separator
from onmt_entmax.strings.guessing import SAMPLE, guess_layout
from onmt_entmax.strings.languages import language_of_file
from onmt_entmax.strings.misplaced_tags import refuse_misplaced_tags
from onmt_entmax.strings.tables import Layout, Row, readable_cells, rows_of
from onmt_entmax.strings.task import TAGS, TARGET, Query, StringTask
from onmt_entmax.strings.units import Unit

ALL = "all"
"""Language of a table that has none"""
_MOST_NAMED = 10  # bad rows that an error names


@dataclass
class Gold:
    """The gold targets of each query, and how their tables are read.

    Attributes:
        task: units and columns of the tables.
        columns: columns of the last table; predicted tables are expected to have them.
        targets: gold targets by query; queries of a table without a column of languages have the
            table's language.
        names: for each table the language that the name of its file says, or `ALL`.
        tags: tags of the model, if a model says the columns: they tell tags from sources.
        languages: languages of the model: they tell languages from other words in names of files.
    """

    task: StringTask
    columns: tuple[str, ...] = ()
    targets: dict[Query, tuple[str, ...]] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    tags: frozenset[str] = frozenset()
    languages: frozenset[str] = frozenset()


def guessed_task(
    path: Path, columns: Sequence[str], separators: Mapping[str, str]
) -> tuple[StringTask, str]:
    """Guess the task of a gold table; return it with a description of the guess, for people.

    Args:
        path: of the table.
        columns: of the table; empty: a heading names them, or they are guessed.
        separators: of `target` and `tags`; others are guessed.

    Raises:
        UserError: the columns are unclear, or none has targets.
    """
    sample = list(islice(read_lines(path), SAMPLE))
    layout = guess_layout(sample, str(path), columns)
    _refuse_without_target(path, layout)
    table = readable_cells(layout, filter(str.strip, sample))
    rows = table[1:] if layout.heading else table
    target = separators.get(TARGET)
    if target is None:
        target = guess_separator(_cells_of(TARGET, layout.columns, rows))
    tags = separators.get(TAGS) or guess_tag_separator(_cells_of(TAGS, layout.columns, rows))
    task = StringTask(layout.columns, target=Unit.between(target), tag_separator=tags)
    guess = "" if TARGET in separators else " (guessed; --separator names another)"
    return task, f"{layout}; target: {task.target}{guess}"


def _refuse_without_target(path: Path, layout: Layout) -> None:
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


def read_gold(
    paths: Sequence[Path],
    task: StringTask,
    columns: Sequence[str] = (),
    tags: frozenset[str] = frozenset(),
    languages: frozenset[str] = frozenset(),
) -> Gold:
    """Return the gold targets of tables.

    Args:
        paths: of the tables.
        task: of all of them.
        columns: of the tables, if somebody named them.
        tags: see `Gold`.
        languages: see `Gold`.

    Raises:
        UserError: a row cannot be read, or a table has no targets.
    """
    gold = Gold(task, tags=tags, languages=languages)
    for path in paths:
        sample = list(islice(read_lines(path), SAMPLE))
        layout = guess_layout(sample, str(path), columns, task)
        refuse_misplaced_tags(sample, layout, task, tags, str(path))
        _refuse_without_target(path, layout)
        gold.columns = layout.columns
        language = language_of_file(path.name) or ALL
        gold.names.append(language)
        for row in table_rows(path, layout, task, language, needs_target=True):
            targets = gold.targets.get(row.query, ())
            if row.target not in targets:
                gold.targets[row.query] = (*targets, row.target)
    return gold


def table_rows(
    path: Path, layout: Layout, task: StringTask, language: str, needs_target: bool
) -> Iterator[Row]:
    """Yield the rows of a table, gold or predicted.

    Args:
        path: of the table.
        layout: of its columns.
        task: the units of its columns.
        language: of rows without a column of languages.
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
