"""Read tables of strings from files, and say what was read: for `prepare` and `audit`.

A `Table` begins as a path and its split. `name_languages` and `read_tables` fill in the rest.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from onmt_entmax.cli.messages import warn
from onmt_entmax.errors import UserError, counted
from onmt_entmax.files import read_lines
from onmt_entmax.rules import shown
from onmt_entmax.strings.guessing import SAMPLE, guess_layout, guess_separator, guess_tag_separator
from onmt_entmax.strings.languages import language_of_file
from onmt_entmax.strings.tables import (
    ALIASES,
    BadRow,
    Layout,
    Row,
    TableError,
    readable_cells,
    rows_of,
)
from onmt_entmax.strings.task import (
    INFLECTION,
    LANGUAGE_COLUMN,
    LEFT_OUT,
    SOURCE,
    TAGS,
    TARGET,
    StringTask,
    TaskError,
)
from onmt_entmax.strings.units import Unit

COVERED = "test"
"""The split whose tables may lack the target"""
_LISTED = 10  # bad rows that are named


@dataclass
class Table:
    """A file, and what was read of it.

    Attributes:
        split: such as `train`.
        path: of the file.
        language: of its rows; empty where tables have none.
        by_name: whether the name of the file says it.
        covered: whether it has no targets, as those of a shared task's test set.
        layout: of its columns.
        rows: that can be read.
        bad: rows that cannot.
    """

    split: str
    path: Path
    language: str = ""
    by_name: bool = False
    covered: bool = False
    layout: Layout = field(default_factory=lambda: Layout(()))
    rows: list[Row] = field(default_factory=list)
    bad: list[BadRow] = field(default_factory=list)


def separators_of(texts: Sequence[str]) -> dict[str, str]:
    """Return the separators of `--separator COLUMN=TEXT`.

    Raises:
        UserError: a text has another form.
    """
    separators = {}
    for text in texts:
        name, equals, separator = text.partition("=")
        column = ALIASES.get(name, name)
        if not equals or column not in (SOURCE, TARGET, TAGS):
            raise UserError(
                f"--separator {text!r}: expected source=, target= or tags= and what stands between "
                'symbols, such as "target= "'
            )
        separators[column] = separator
    return separators


def name_languages(tables: Sequence[Table], language: str | None, by_name: bool = False) -> None:
    """Give each table its language, where no column has it.

    Args:
        tables: of all splits, those of training first.
        language: of all of them; None: by the names of the files.
        by_name: whether training files that all have one name have that language too.

    Raises:
        UserError: the name of a file says no language, or the language is no word.
    """
    if language is not None and language.split() != [language]:
        raise UserError(f"--language {shown(language)}: must be one word without spaces")
    names = {language_of_file(each.path.name) for each in tables if each.split == tables[0].split}
    if language is None and len(names) < 2 and not by_name:
        return
    for table in tables:
        table.language = language or language_of_file(table.path.name)
        table.by_name = language is None
    unnamed = [table for table in tables if table.language.split() != [table.language]]
    if unnamed:
        more = f" and {counted(len(unnamed) - 1, 'file')} more" if unnamed[1:] else ""
        column = "" if by_name else ", or name a column of languages with --columns"
        raise UserError(
            f"{unnamed[0].path}{more}: the name of the file says no language (one word, as in "
            f"deu_train.tsv); rename it{column}; if all tables are of one language, --language "
            "names it"
        )


def read_tables(
    tables: Sequence[Table],
    columns: Sequence[str] = (),
    separators: Mapping[str, str] | None = None,
    usual: Sequence[str] = (),
) -> StringTask:
    """Read the rows of tables, of which some may be bad; return their task.

    Args:
        tables: those of training first; they receive layouts and rows.
        columns: of all tables; empty: a heading names them, or they are guessed.
        separators: of columns; others are guessed from the tables of the first split.
        usual: columns of tables of which no guess is sure.

    Raises:
        UserError: tables have different columns, or columns that make no sense.
    """
    first = tables[0]
    texts: dict[str, list[str]] = {}  # by column, of the tables of the first split
    for table in tables:
        sample = list(islice(read_lines(table.path), SAMPLE))
        table.layout = _layout(table, first, sample, columns, usual)
        by_column = _columns_of(sample, table.layout)
        if table.split == COVERED:
            table.covered = not any(by_column.get(TARGET, ()))
        if table.split == first.split:
            for column, cells in by_column.items():
                texts.setdefault(column, []).extend(cells)
    task = _task(first, {**_guessed_separators(texts), **(separators or {})})
    for table in tables:
        _fill(table, task)
    return task


def _columns_of(sample: Sequence[str], layout: Layout) -> dict[str, tuple[str, ...]]:
    """Return the cells of each column, of the lines that are rows; nothing without rows."""
    table = readable_cells(layout, filter(str.strip, sample))
    if layout.heading:
        table = table[1:]
    rows = [cells for cells in table if len(cells) == len(layout.columns)]
    if not rows:
        return {}
    return dict(zip(layout.columns, zip(*rows, strict=True), strict=True))


def _guessed_separators(texts: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return what stands between the symbols, or the tags, of each column."""
    return {
        SOURCE: guess_separator(texts.get(SOURCE, ())),
        TARGET: guess_separator(texts.get(TARGET, ())),
        TAGS: guess_tag_separator(texts.get(TAGS, ())),
    }


def _task(first: Table, separators: Mapping[str, str]) -> StringTask:
    """Return the task of tables.

    Args:
        first: one of them, with its layout.
        separators: of `source`, `target` and `tags`.

    Raises:
        UserError: the columns make no sense.
    """
    try:
        return StringTask(
            first.layout.columns,
            Unit.between(separators[SOURCE]),
            Unit.between(separators[TARGET]),
            separators[TAGS] or ";",
            languages=LANGUAGE_COLUMN in first.layout.columns or bool(first.language),
        )
    except TaskError as error:
        raise UserError(f"{first.path}: {error}; --columns names them") from None


def _fill(table: Table, task: StringTask) -> None:
    """Read the rows of a table into it.

    Raises:
        UserError: there are none.
    """
    lines = read_lines(table.path)
    rows = rows_of(
        lines, table.layout, task, language=table.language, needs_target=not table.covered
    )
    for row in rows:
        if isinstance(row, Row):
            table.rows.append(row)
        else:
            table.bad.append(row)
    if not table.rows and not table.bad:
        raise UserError(f"{table.path}: no rows")


def _layout(
    table: Table,
    first: Table,
    sample: Sequence[str],
    columns: Sequence[str],
    usual: Sequence[str],
) -> Layout:
    """Return the layout of a table, which has the columns of the first one, in any order.

    Args:
        table: whose layout is wanted.
        first: of the tables, with its layout unless it is this one.
        sample: the first lines of the table.
        columns: see `read_tables`.
        usual: see `read_tables`.

    Raises:
        UserError: the columns are unclear, or others than those of the first table.
    """
    name = str(table.path)
    if table is first:
        return guess_layout(sample, name, columns, usual=usual)
    names = first.layout.columns
    if not columns:
        with suppress(TableError):
            layout = guess_layout(sample, name)
            # Of two columns without a heading, nothing tells which is which.
            sure = bool(layout.heading) or TAGS in layout.columns
            if sure and {*layout.columns, LEFT_OUT} == {*names, LEFT_OUT}:
                return layout
    task = StringTask(tuple(columns)) if columns else _task_of(first)
    layout = guess_layout(sample, name, task=task)
    if TARGET not in layout.columns and table.split != COVERED:
        raise UserError(f"{name}: {layout}; no targets, but {first.path} has {', '.join(names)}")
    return layout


def _task_of(table: Table) -> StringTask:
    """Return a task with the columns of a table, whose units are not known yet.

    Raises:
        UserError: the columns make no sense.
    """
    try:
        return StringTask(table.layout.columns)
    except TaskError as error:
        raise UserError(f"{table.path}: {error}; --columns names them") from None


def read_rows(path: Path, columns: Sequence[str] = ()) -> list[Row]:
    """Return the rows of a table of inflections.

    Raises:
        UserError: a row cannot be read.
    """
    table = Table("table", path)
    read_tables([table], columns, {SOURCE: "", TARGET: ""}, INFLECTION.columns)
    refuse_bad_rows([table])
    return table.rows


def refuse_bad_rows(tables: Sequence[Table], skip: Path | None = None, hint: str = "") -> str:
    """List the rows that cannot be read; return the text of the file that has them.

    Args:
        tables: as `read_tables` left them.
        skip: the file to write them to.
        hint: says how to go on without them.

    Raises:
        UserError: there are some, and no file to write them to.
    """
    bad = [(table.path, row) for table in tables for row in table.bad]
    for path, row in bad[:_LISTED]:
        warn(f"{path}:{row.number}: {row.reason}")
    if bad:
        rows = sum(len(table.rows) + len(table.bad) for table in tables)
        more = f", the first {_LISTED} above" if len(bad) > _LISTED else ""
        told = f"{len(bad):,} of {counted(rows, 'row')} cannot be read{more}"
        if skip is None:
            raise UserError(f"{told}; mend them{hint}")
        warn(f"{told}; {skip} has them, with their reasons")
    return "".join(f"{path}:{row.number}\t{row.reason}\t{row.line}\n" for path, row in bad)


def tell(tables: Sequence[Table], task: StringTask) -> None:
    """Print what was seen: layouts, units, and each language with its files and rows.

    Warn of files of one split whose names say one language.
    """
    _tell_layouts(tables)
    layered = any("(" in tag for table in tables for row in table.rows for tag in row.query.tags)
    tags = ""
    if task.has_tags:
        tags = f"; tags between {task.tag_separator!r}"
    if layered:
        tags += ", some layered"
    print(f"source: {task.source}; target: {task.target}{tags}")
    by_language: dict[tuple[str, str], list[Table]] = {}
    for table in tables:
        by_language.setdefault((table.language, table.split), []).append(table)
    _tell_languages(tables, by_language)
    for (language, split), some in by_language.items():
        if len(some) > 1 and some[0].by_name:
            names = ", ".join(table.path.name for table in some)
            warn(f"{split}: {names} are one language here, {language}; --language names another")


def _tell_layouts(tables: Sequence[Table]) -> None:
    """Print each layout with the first table that has it."""
    by_layout: dict[str, list[Table]] = {}
    for table in tables:
        by_layout.setdefault(str(table.layout), []).append(table)
    for layout, (first, *others) in by_layout.items():
        more = f" and {counted(len(others), 'file')} more" if others else ""
        print(f"{first.path.name}{more}: {layout}")


def _tell_languages(
    tables: Sequence[Table], by_language: Mapping[tuple[str, str], Sequence[Table]]
) -> None:
    """Print the files and the number of rows of each language.

    Args:
        tables: all of them.
        by_language: tables by their language and split; those with a column of languages have none.
    """
    counts: dict[str, Counter[str]] = {}  # of rows, by language and split
    for table in tables:
        for row in table.rows:
            counts.setdefault(row.query.language, Counter())[table.split] += 1
    for language, of_split in counts.items():
        parts = []
        for split, count in of_split.items():
            names = ", ".join(table.path.name for table in by_language.get((language, split), ()))
            rows = counted(count, "row")
            parts.append(f"{split}: {names} ({rows})" if names else f"{split}: {rows}")
        title = f"language {language}: " if language else ""
        print(title + "; ".join(parts))
