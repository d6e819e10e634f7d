"""The task of the tables that one `prepare` or `audit` reads: their columns and separators."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from onmt_entmax.cli.sampled_tables import SampledTable
from onmt_entmax.errors import UserError
from onmt_entmax.strings.delimiters import guess_separator, guess_tag_separator
from onmt_entmax.strings.own_headings import own_heading
from onmt_entmax.strings.task import LANGUAGE_COLUMN, SOURCE, TAGS, TARGET, StringTask, TaskError
from onmt_entmax.strings.units import Unit


def shared_task(tables: Sequence[SampledTable], separators: Mapping[str, str]) -> StringTask:
    """Return the task of tables with the same columns.

    Args:
        tables: the tables; the training tables come first.
        separators: separators that the user names, by column; others are guessed from the first
            split.

    Raises:
        UserError: the columns make no sense.
    """
    first = tables[0]
    texts: dict[str, list[str]] = {}  # by column
    for table in tables:
        if table.file.split == first.file.split:
            for column, cells in table.cells.items():
                texts.setdefault(column, []).extend(cells)
    guessed = {
        SOURCE: guess_separator(texts.get(SOURCE, ())),
        TARGET: guess_separator(texts.get(TARGET, ())),
        TAGS: guess_tag_separator(texts.get(TAGS, ())),
    }
    task = task_of(first, guessed | dict(separators))
    return replace(task, heading=heading_to_record(tables))


def heading_to_record(tables: Sequence[SampledTable]) -> tuple[str, ...]:
    """Return the heading that the model records, since usual names do not say its columns.

    That is the first such heading of a table with the column order of the first one. It is empty if
    there is none.
    """
    headings = (
        own_heading(table.layout)
        for table in tables
        if table.layout.columns == tables[0].layout.columns
    )
    return next(filter(None, headings), ())


def task_of(table: SampledTable, separators: Mapping[str, str]) -> StringTask:
    """Return a task with the columns of a table.

    It has languages if the table has one, or a column of them.

    Args:
        table: the table.
        separators: separators of source, target and tags, by column. Without one, source and target
            are divided into characters, and tags at semicolons.

    Raises:
        UserError: the columns make no sense.
    """
    columns = table.layout.columns
    try:
        return StringTask(
            columns,
            source=Unit.between(separators.get(SOURCE, "")),
            target=Unit.between(separators.get(TARGET, "")),
            tag_separator=separators.get(TAGS) or ";",
            languages=bool(table.file.language) or LANGUAGE_COLUMN in columns,
        )
    except TaskError as error:
        raise UserError(f"{table.file.path}: {error}; --columns names them") from None
