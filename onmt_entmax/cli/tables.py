"""Read tables of strings from files, for `prepare` and `audit`.

A `Table` begins as a path and its split. Then, in this order, `name_languages` gives it a language
(where no column has it), `read_tables` fills in layout and rows, and `refuse_bad_rows` ends the
command if some of them cannot be read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from onmt_entmax.cli.bad_rows import LISTED, bad_row_line, bad_row_text, bad_rows_summary
from onmt_entmax.cli.messages import warn
from onmt_entmax.cli.table_layouts import (
    cells_by_column,
    guessed_separators,
    layout_like,
    task_of,
)
from onmt_entmax.errors import UserError, counted
from onmt_entmax.files import read_lines
from onmt_entmax.rules import shown
from onmt_entmax.strings.guessing import SAMPLE, guess_layout
from onmt_entmax.strings.languages import language_of_file
from onmt_entmax.strings.tables import ALIASES, BadRow, Layout, Row, rows_of
from onmt_entmax.strings.task import INFLECTION, SOURCE, TAGS, TARGET, StringTask

COVERED = "test"
"""The split whose tables may lack the target"""


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
    training = [table for table in tables if table.split == tables[0].split]
    names = {language_of_file(table.path.name) for table in training}
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
        if table is first:
            table.layout = guess_layout(sample, str(table.path), columns, usual=usual)
        else:
            table.layout = _further_layout(table, first, sample, columns)
        cells = cells_by_column(sample, table.layout)
        if table.split == COVERED:
            table.covered = not any(cells.get(TARGET, ()))
        if table.split == first.split:
            for column, of_column in cells.items():
                texts.setdefault(column, []).extend(of_column)
    all_separators = guessed_separators(texts) | dict(separators or {})
    task = task_of(first.layout, first.path, all_separators, languages=bool(first.language))
    for table in tables:
        _fill(table, task)
    return task


def _further_layout(
    table: Table, first: Table, sample: Sequence[str], columns: Sequence[str]
) -> Layout:
    """Return the layout of a table that is not the first, whose columns it has.

    Args:
        table: whose layout is wanted.
        first: of all tables, with its layout.
        sample: the first lines of the table.
        columns: of all tables, if the user named them.

    Raises:
        UserError: its columns are unclear, or targets are missing where they must not.
    """
    layout = layout_like(first.layout, first.path, sample, table.path, columns)
    if TARGET not in layout.columns and table.split != COVERED:
        names = ", ".join(first.layout.columns)
        raise UserError(f"{table.path}: {layout}; no targets, but {first.path} has {names}")
    return layout


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
    """Warn of the rows that cannot be read; return the text of the file that has them.

    Args:
        tables: as `read_tables` left them.
        skip: the file that the caller writes them to.
        hint: says how to go on without them.

    Raises:
        UserError: there are some, and no file to write them to.
    """
    bad = [(table.path, row) for table in tables for row in table.bad]
    if not bad:
        return ""
    warn(*(bad_row_text(path, row) for path, row in bad[:LISTED]))
    rows = sum(len(table.rows) + len(table.bad) for table in tables)
    summary = bad_rows_summary(len(bad), rows)
    if skip is None:
        raise UserError(f"{summary}; mend them{hint}")
    warn(f"{summary}; {skip} has them, with their reasons")
    return "".join(bad_row_line(path, row) for path, row in bad)
