"""The columns and the task that the tables of one `prepare` or `audit` share.

The first table decides the columns; the others have the same ones, in any order.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from onmt_entmax.errors import UserError
from onmt_entmax.strings.delimiters import guess_separator, guess_tag_separator
from onmt_entmax.strings.guessing import guess_layout
from onmt_entmax.strings.tables import Layout, TableError, readable_cells
from onmt_entmax.strings.task import (
    LANGUAGE_COLUMN,
    LEFT_OUT,
    SOURCE,
    TAGS,
    TARGET,
    StringTask,
    TaskError,
)
from onmt_entmax.strings.units import Unit


def layout_like(
    first: Layout, first_path: Path, sample: Sequence[str], path: Path, columns: Sequence[str]
) -> Layout:
    """Return the layout of a table that has the columns of the first one; targets may be missing.

    A heading, or tags, show the order of its columns. Without either, it has the order of the first
    table.

    Args:
        first: the layout of the first table.
        first_path: path of the first table, for errors.
        sample: the first lines of the table.
        path: path of the table, for errors.
        columns: of all tables, if the user named them.

    Raises:
        UserError: the columns are unclear, or others than those of the first table.
    """
    name = str(path)
    if columns:
        return guess_layout(sample, name, task=StringTask(tuple(columns)))
    with suppress(TableError):
        layout = guess_layout(sample, name)
        # Of two columns without a heading, nothing tells which is which.
        is_sure = bool(layout.heading) or TAGS in layout.columns
        if is_sure and {*layout.columns, LEFT_OUT} == {*first.columns, LEFT_OUT}:
            return layout
    return guess_layout(sample, name, task=task_of(first, first_path))


def task_of(
    layout: Layout,
    path: Path,
    separators: Mapping[str, str] | None = None,
    languages: bool = False,
) -> StringTask:
    """Return a task with the columns of a table.

    Args:
        layout: of the table.
        path: of the table, for the error.
        separators: of source, target and tags; None: not known yet.
        languages: whether each file has a language.

    Raises:
        UserError: the columns make no sense.
    """
    separators = separators or {}
    try:
        return StringTask(
            layout.columns,
            source=Unit.between(separators.get(SOURCE, "")),
            target=Unit.between(separators.get(TARGET, "")),
            tag_separator=separators.get(TAGS) or ";",
            languages=languages or LANGUAGE_COLUMN in layout.columns,
        )
    except TaskError as error:
        raise UserError(f"{path}: {error}; --columns names them") from None


def cells_by_column(sample: Sequence[str], layout: Layout) -> dict[str, tuple[str, ...]]:
    """Return the cells of each column, without lines that are no rows; empty if there are none."""
    table = readable_cells(layout, filter(str.strip, sample))
    if layout.heading:
        table = table[1:]
    rows = [cells for cells in table if len(cells) == len(layout.columns)]
    if not rows:
        return {}
    return dict(zip(layout.columns, zip(*rows, strict=True), strict=True))


def guessed_separators(texts: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return the separators of symbols and of tags, guessed from the cells of each column."""
    return {
        SOURCE: guess_separator(texts.get(SOURCE, ())),
        TARGET: guess_separator(texts.get(TARGET, ())),
        TAGS: guess_tag_separator(texts.get(TAGS, ())),
    }
