"""Headings that say more about one model's tables than usual names do.

A model records the heading of its training tables (`StringTask.heading`) if the usual names
(`column_names.py`) do not say the same columns. Its own names count before usual ones, in whatever
order a table has them:

| heading | columns of training | a table with usual names |
|---|---|---|
| `Wort`, `Merkmale`, `Form` | source, tags, target | is read by these names |
| `form`, `lemma` | source, target | is refused: they would exchange source and target |
"""

from collections.abc import Sequence

from onmt_entmax.strings.column_names import (
    column_of,
    columns_by_names,
    is_like_rows_below,
    may_name_source,
    normalised,
    singular,
    with_usual_names,
)
from onmt_entmax.strings.tables import Layout, TableError
from onmt_entmax.strings.task import LEFT_OUT, SOURCE, TARGET, StringTask


def own_heading(layout: Layout) -> tuple[str, ...]:
    """Return a table's heading if usual names do not say its columns; else nothing."""
    cells = layout.cells_above
    return () if columns_by_names(cells) == layout.columns else cells


def has_names_of(own: Sequence[str], heading: Sequence[str]) -> bool:
    """Return whether a heading has two of the names of an own heading, which order its columns."""
    return len({*map(singular, own)} & {*map(singular, heading)}) > 1


def columns_by_own_heading(
    task: StringTask,
    first: Sequence[str],
    below: Sequence[Sequence[str]],
    *,
    usual: tuple[str, ...],
    name: str,
) -> tuple[str, ...]:
    """Return the columns of a table whose first row has names of a task's heading; else nothing.

    - A row is a heading if two of its cells have such names, or if one has and the row is a heading
      by its usual names.
    - Other cells may have usual names, except those of source and target if training's names
      contradict the usual ones: they are refused.
    - If the names are in the order of training, a new name stands for the column of training there.

    Args:
        task: task of a model.
        first: cells of the first row.
        below: cells of the other rows.
        usual: columns that the first row has by usual names; empty if it is no heading by them.
        name: name of the table, for the error.

    Raises:
        TableError: names above source and target are not those of training, one stands above
            several columns of training, or the source has no name.
    """
    if not task.heading or len(first) < 2:
        return ()
    row = _FirstRow(task, first)
    if row.is_heading_of_training():
        return task.columns
    if row.confirms(usual):
        return usual
    if not row.is_heading(is_usual=bool(usual)):
        return ()
    columns = with_usual_names(row.own, first)
    if row.is_in_order_of_training(columns):
        columns = task.columns
    if is_like_rows_below(first, columns, below):
        return ()
    if row.is_unclear() or not row.says_which_is_source(columns):
        raise row.error(name)
    return columns


class _FirstRow:
    """The first row of a table, whose cells may be names of a task's heading.

    Args:
        task: task of the model, with a heading.
        cells: cells of the row.

    Attributes:
        own: the column that each cell names in the task's heading; None: it names none, or several.
    """

    def __init__(self, task: StringTask, cells: Sequence[str]) -> None:
        self._task = task
        self._cells = cells
        columns_under: dict[str, set[str]] = {}
        for cell, column in zip(task.heading, task.columns, strict=True):
            columns_under.setdefault(singular(cell), set()).add(column)
        # For each cell, the columns above which training had this name.
        self._candidates = [columns_under.get(singular(cell), set()) for cell in cells]
        self.own = [
            next(iter(columns)) if len(columns) == 1 else None for columns in self._candidates
        ]

    def is_heading_of_training(self) -> bool:
        """Return whether all cells are those of the task's heading, in the same order.

        Then it does not matter if one name stands above two columns.
        """
        return [*map(singular, self._cells)] == [*map(singular, self._task.heading)]

    def confirms(self, usual: Sequence[str]) -> bool:
        """Return whether usual names say all columns of the task, and training's do not contradict.

        Args:
            usual: the column that each cell names by its usual name; empty if there are none.
        """
        if not {*self._task.columns} <= {*usual, LEFT_OUT}:
            return False
        pairs = zip(usual, self.own, strict=True)
        return not self._task_contradicts_usual_names() and all(
            own_column in (None, column) for column, own_column in pairs
        )

    def is_heading(self, *, is_usual: bool) -> bool:
        """Return whether the row is a heading, by the columns that its cells name.

        Words of a row may be names by chance. Then only one cell names a column, or two cells name
        the same one, such as `form` and `forms` in a table of English.

        Args:
            is_usual: whether the row is a heading by usual names.
        """
        named = [column for column in self.own if column not in (None, LEFT_OUT)]
        are_different = len(set(named)) == len(named)
        return are_different and (len(named) > 1 or is_usual)

    def is_in_order_of_training(self, columns: Sequence[str]) -> bool:
        """Return whether each column that the row names stands where training had it.

        Args:
            columns: columns that the row names; `-` for others.
        """
        trained = self._task.columns
        return len(columns) == len(trained) and all(
            column == trained_column or (column == LEFT_OUT and own_column is None)
            for column, own_column, trained_column in zip(columns, self.own, trained, strict=True)
        )

    def is_unclear(self) -> bool:
        """Return whether training had the name of a cell above several columns."""
        return any(len(columns) > 1 for columns in self._candidates)

    def says_which_is_source(self, columns: Sequence[str]) -> bool:
        """Return whether the row says which column is the source.

        If training's names contradict the usual ones, only one of training's says so, and there
        must be no usual name of source or target beside it.

        Args:
            columns: columns that the row names.
        """
        if self._task_contradicts_usual_names():
            return SOURCE in self.own and not self._has_usual_name_of_text()
        return SOURCE in columns

    def _task_contradicts_usual_names(self) -> bool:
        """Return whether training had a usual name of source or target above another column."""
        usual = columns_by_names(self._task.heading)
        return any(
            column in (SOURCE, TARGET) and column != trained
            for column, trained in zip(usual, self._task.columns, strict=False)
        )

    def _has_usual_name_of_text(self) -> bool:
        """Return whether a cell that is no name of training is a usual name of source or target.

        The exceptions are `source` and `target` themselves, if no name of training says the same:
        `predict` puts `target` above the column that it adds.
        """
        for cell, own_column in zip(self._cells, self.own, strict=True):
            column = SOURCE if may_name_source(cell) else column_of(cell)
            is_exception = normalised(cell) == column and column not in self.own
            if own_column is None and column in (SOURCE, TARGET) and not is_exception:
                return True
        return False

    def error(self, name: str) -> TableError:
        """Return the error about a row with other names than training's; `name` is the table's."""
        named = ", ".join(
            f"{cell!r} for {column}"
            for cell, column in zip(self._task.heading, self._task.columns, strict=True)
            if column != LEFT_OUT
        )
        return TableError(
            f"{name}: its heading is {' | '.join(self._cells)!r}, but training named {named}; give "
            "it these names, or leave the heading out"
        )
