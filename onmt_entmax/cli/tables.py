"""Read tables of strings from files, and say what was read."""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from onmt_entmax.cli.ending import warn
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
    if unnamed := [each for each in tables if each.language.split() != [each.language]]:
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
    texts: dict[str, list[str]] = {}
    for table in tables:
        sample = list(islice(read_lines(table.path), SAMPLE))
        table.layout = _layout(table, first, sample, columns, usual)
        cells = readable_cells(table.layout, filter(str.strip, sample))
        width = len(table.layout.columns)
        rows = [row for row in cells[bool(table.layout.heading) :] if len(row) == width]
        by_column = dict(zip(table.layout.columns, zip(*rows, strict=True), strict=False))
        if table.split == COVERED:
            table.covered = not any(by_column.get(TARGET, ()))
        if table.split == first.split:
            for column, some in by_column.items():
                texts.setdefault(column, []).extend(some)
    guessed = {
        SOURCE: guess_separator(texts.get(SOURCE, ())),
        TARGET: guess_separator(texts.get(TARGET, ())),
        TAGS: guess_tag_separator(texts.get(TAGS, ())),
    }
    between = {**guessed, **(separators or {})}
    try:
        task = StringTask(
            first.layout.columns,
            Unit.between(between[SOURCE]),
            Unit.between(between[TARGET]),
            between[TAGS] or ";",
            languages=LANGUAGE_COLUMN in first.layout.columns or bool(first.language),
        )
    except TaskError as error:
        raise UserError(f"{first.path}: {error}; --columns names them") from None
    for table in tables:
        lines, language = read_lines(table.path), table.language
        for row in rows_of(lines, table.layout, task, language, not table.covered):
            if isinstance(row, Row):
                table.rows.append(row)
            else:
                table.bad.append(row)
        if not table.rows and not table.bad:
            raise UserError(f"{table.path}: no rows")
    return task


def _layout(
    table: Table,
    first: Table,
    sample: Sequence[str],
    columns: Sequence[str],
    usual: Sequence[str],
) -> Layout:
    """Return the layout of a table, which has the columns of the first one, in any order."""
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
    like = StringTask(tuple(columns)) if columns else _task_of(first)
    layout = guess_layout(sample, name, task=like)
    if TARGET not in layout.columns and table.split != COVERED:
        raise UserError(f"{name}: {layout}; no targets, but {first.path} has {', '.join(names)}")
    return layout


def _task_of(table: Table) -> StringTask:
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
    layouts: dict[str, list[Table]] = {}
    for table in tables:
        layouts.setdefault(str(table.layout), []).append(table)
    for layout, some in layouts.items():
        more = f" and {counted(len(some) - 1, 'file')} more" if some[1:] else ""
        print(f"{some[0].path.name}{more}: {layout}")
    layered = any("(" in tag for table in tables for row in table.rows for tag in row.query.tags)
    tags = f"; tags between {task.tag_separator!r}" if task.has_tags else ""
    print(f"source: {task.source}; target: {task.target}{tags}{', some layered' * layered}")
    counts: dict[str, Counter[str]] = {}
    splits: dict[tuple[str, str], list[Table]] = {}
    for table in tables:
        splits.setdefault((table.language, table.split), []).append(table)
        for row in table.rows:
            counts.setdefault(row.query.language, Counter())[table.split] += 1
    for language, of_split in counts.items():
        parts = []
        for split, count in of_split.items():
            names = ", ".join(table.path.name for table in splits.get((language, split), ()))
            rows = counted(count, "row")
            parts.append(f"{split}: {names} ({rows})" if names else f"{split}: {rows}")
        print(f"language {language}: " * bool(language) + "; ".join(parts))
    for (language, split), some in splits.items():
        if len(some) > 1 and some[0].by_name:
            names = ", ".join(table.path.name for table in some)
            warn(f"{split}: {names} are one language here, {language}; --language names another")
