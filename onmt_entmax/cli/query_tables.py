"""Find the columns and the language of a table to predict, and read its rows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from onmt_entmax.cli.messages import note, warn
from onmt_entmax.cli.query_files import TableFile
from onmt_entmax.cli.streams import STDIN_NAME
from onmt_entmax.errors import UserError
from onmt_entmax.files import read_lines
from onmt_entmax.strings.guessing import SAMPLE, guess_layout
from onmt_entmax.strings.languages import language_of_file
from onmt_entmax.strings.misplaced_tags import refuse_misplaced_tags
from onmt_entmax.strings.tables import BadRow, Layout, Row, rows_of
from onmt_entmax.strings.task import LANGUAGE_COLUMN, TAGS, StringTask
from onmt_entmax.transducer import Transducer, TransducerError


@dataclass(frozen=True)
class QueryTable(TableFile):
    """A table of queries whose columns are known.

    Attributes:
        layout: its columns.
        language: language of all rows; empty if a column has languages, or the models read none.
    """

    layout: Layout
    language: str


def with_layout(
    file: TableFile,
    transducer: Transducer,
    columns: Sequence[str],
    language: str | None,
    *,
    own_language: bool = False,
) -> QueryTable:
    """Return a table with its layout and language; report columns that the models do not read.

    Args:
        file: the table.
        transducer: the models.
        columns: columns that `--columns` names; empty: a heading names them, or the models' task.
        language: value of `--language`, if the user gave one.
        own_language: whether a column of languages, or a language in the file's name, replaces
            `language`, as for training tables. If not, `language` and such a column exclude each
            other.

    Raises:
        UserError: its columns are unclear, or the models do not know its language.
    """
    task = transducer.task
    sample = list(islice(read_lines(file.path, file.name), SAMPLE))
    layout = guess_layout(sample, file.name, columns, task=task)
    if not columns:
        refuse_misplaced_tags(sample, layout, task, known_tags={*transducer.tags}, name=file.name)
    layout = _without_unread(layout, task, file.name)
    if task.has_tags and TAGS not in layout.columns:
        warn(f"{file.name}: has no tags, which the model reads")
    if own_language and (LANGUAGE_COLUMN in layout.columns or _names_language(file, transducer)):
        language = None
    table_language = _language_of(file, layout, transducer, language)
    return QueryTable(**vars(file), layout=layout, language=table_language)


def _names_language(file: TableFile, transducer: Transducer) -> bool:
    """Return whether the name of a file contains a language that the models know."""
    name = language_of_file(file.path.name)
    try:
        return bool(name and transducer.known_language(name))
    except TransducerError:
        return False


def _without_unread(layout: Layout, task: StringTask, name: str) -> Layout:
    """Return a layout without the columns that the models do not read; print these columns."""
    unread = set()
    if TAGS in layout.columns and not task.has_tags:
        unread.add(TAGS)
    if LANGUAGE_COLUMN in layout.columns and not task.languages:
        unread.add(LANGUAGE_COLUMN)
    if unread:
        note(f"{name}: the model reads no {' and no '.join(sorted(unread))}; left out")
    return layout.without(unread)


def _language_of(
    file: TableFile, layout: Layout, transducer: Transducer, language: str | None
) -> str:
    """Return the language of a table as the models name it; empty if a column has languages.

    Args:
        file: the table, whose name may contain its language.
        layout: columns of the table.
        transducer: the models.
        language: value of `--language`, if the user gave one.

    Raises:
        UserError: the models do not know it, or `--language` is given besides a column.
    """
    if LANGUAGE_COLUMN in layout.columns:
        if language is not None:
            raise UserError(f"{file.name}: has a column of languages; leave --language out")
        return ""
    name = language
    if name is None and transducer.task.languages and file.name != STDIN_NAME:
        name = language_of_file(file.path.name)
    try:
        known_name = transducer.known_language(name or "")
    except TransducerError as error:
        hint = "" if language else "; --language names that of the table"
        raise UserError(f"{file.name}: {error}{hint}") from None
    if known_name and not name:
        note(f"{file.name}: language {known_name}, the only one of the model")
    return known_name


def rows_and_bad_rows(table: QueryTable, transducer: Transducer) -> Iterator[Row | BadRow]:
    """Yield the rows of a table in order; rows that the models cannot answer become bad rows."""
    lines = read_lines(table.path, table.name)
    rows = rows_of(
        lines, table.layout, transducer.task, language=table.language, needs_target=False
    )
    for row in rows:
        if isinstance(row, BadRow):
            yield row
            continue
        try:
            yield row._replace(query=transducer.checked(row.query))
        except TransducerError as error:
            yield BadRow(row.number, str(error), table.layout.text(row.cells))
