"""Refuse tables whose columns stand in another order than those of the model."""

from collections.abc import Container, Iterable

from onmt_entmax.strings.tables import Layout, TableError, readable_cells
from onmt_entmax.strings.task import TAGS, StringTask


def refuse_misplaced_tags(
    sample: Iterable[str],
    layout: Layout,
    task: StringTask,
    *,
    model_tags: Container[str],
    name: str,
) -> None:
    """Refuse a table that has the tags of a model in another column than its layout says.

    Args:
        sample: first lines of the table.
        layout: columns of the table.
        task: task of the model.
        model_tags: tags that the model knows.
        name: name of the table, for the error.

    Raises:
        TableError: most rows have tags of the model in another column, and few in that of the tags.
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
    # For each column, the rows that have a tag of the model there.
    tagged_rows = [
        sum(any(tag in model_tags for tag in task.tags_of(cell)) for cell in column)
        for column in zip(*rows, strict=True)
    ]
    expected = layout.columns.index(TAGS)
    found = tagged_rows.index(max(tagged_rows))
    half = len(rows) / 2
    if tagged_rows[expected] < half < tagged_rows[found]:
        raise TableError(
            f"{name}: column {found + 1} has the tags of the model, and not column {expected + 1}; "
            "name the columns of this table in its first line, such as `source`, `tags` and "
            "`target`, or by --columns"
        )
