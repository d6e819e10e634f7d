"""Find the columns of a table for a model: by its heading, or else in the order of training."""

from collections.abc import Sequence

from onmt_entmax.errors import counted
from onmt_entmax.strings.tables import ColumnsError, width_of
from onmt_entmax.strings.task import LEFT_OUT, SOURCE, TAGS, TARGET, StringTask


def columns_for_task(
    task: StringTask, table: Sequence[Sequence[str]], named: Sequence[str], *, name: str
) -> tuple[str, ...]:
    """Return the columns of a table for a model.

    The target may be missing, and so may all columns that training left out. Tags may be missing
    from a heading all of whose cells name columns.

    Args:
        task: task of the model.
        table: cells of the rows.
        named: columns that the first row names; empty if it names none.
        name: name of the table, for errors.

    Raises:
        ColumnsError: the table has another number of columns, or its heading contradicts the order
            of training without naming the tags.
    """
    needed = {SOURCE, TAGS} if task.has_tags else {SOURCE}
    if needed <= set(named) or (named and LEFT_OUT not in named):
        return tuple(named)
    columns = _columns_by_width(task, width_of(table), name)
    pairs = zip(named, columns, strict=False)
    if any(by_name not in (LEFT_OUT, column) for by_name, column in pairs):
        raise ColumnsError(
            f"{name}: its heading {' | '.join(table[0])!r} names {', '.join(named)}, but no tags, "
            "which the model reads"
        )
    return columns


def _columns_by_width(task: StringTask, width: int, name: str) -> tuple[str, ...]:
    """Return the columns of a table without a heading, in the order of training.

    Args:
        task: task of the model.
        width: number of columns of the table.
        name: name of the table, for the error.

    Raises:
        ColumnsError: the table has another number of columns.
    """
    columns = task.columns
    without_target = columns_without(columns, TARGET)
    used = columns_without(columns, LEFT_OUT)
    for candidate in (columns, without_target, used, columns_without(used, TARGET)):
        if len(candidate) == width:
            return candidate
    raise ColumnsError(
        f"{name}: {counted(width, 'column')}, not {len(columns)} ({', '.join(columns)}), or "
        f"{len(without_target)} without the target"
    )


def columns_without(columns: Sequence[str], name: str) -> tuple[str, ...]:
    """Return the columns that do not have a name."""
    return tuple(column for column in columns if column != name)
