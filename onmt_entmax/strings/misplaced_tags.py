"""Refuse tables whose tags stand in another column than in training."""

from collections.abc import Container, Iterable

from onmt_entmax.strings.tables import ColumnsError, Layout, readable_cells
from onmt_entmax.strings.task import TAGS, StringTask


def refuse_misplaced_tags(
    sample: Iterable[str],
    layout: Layout,
    task: StringTask,
    *,
    known_tags: Container[str],
    name: str,
) -> None:
    """Refuse a table that has the tags of training in another column than its layout says.

    A few rows prove nothing: a word may be spelled like a tag, and a tag may be new.
    The table is refused if most rows have a known tag in the other column, and fewer than half have
    one in the column of the tags. A table with a heading says itself where its tags are.

    Args:
        sample: first lines of the table.
        layout: columns of the table.
        task: task of the tables.
        known_tags: tags of the training table, or of the model.
        name: name of the table, for the error.

    Raises:
        TableError: the tags are in another column.
    """
    if TAGS not in layout.columns or layout.heading:
        return
    rows = [
        cells
        for cells in readable_cells(layout, filter(str.strip, sample))
        if len(cells) == len(layout.columns)
    ]
    if not rows:
        return
    rows_with_tags = [
        sum(any(tag in known_tags for tag in task.tags_of(cell)) for cell in column)
        for column in zip(*rows, strict=True)
    ]
    expected = layout.columns.index(TAGS)
    actual = rows_with_tags.index(max(rows_with_tags))
    half = len(rows) / 2
    if rows_with_tags[expected] < half < rows_with_tags[actual]:
        raise ColumnsError(
            f"{name}: column {actual + 1} has the tags of training, and not column {expected + 1}"
        )
