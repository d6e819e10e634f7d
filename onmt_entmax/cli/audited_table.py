"""The table that `audit` checks, read with its task."""

from collections.abc import Sequence
from pathlib import Path

from onmt_entmax.checkpoint import load
from onmt_entmax.cli.split_files import SplitFile
from onmt_entmax.cli.table_bad_rows import refuse_bad_rows
from onmt_entmax.cli.tables import Table, read_tables
from onmt_entmax.errors import UserError, counted
from onmt_entmax.inflection import Question
from onmt_entmax.inventory import Inventory
from onmt_entmax.strings.tables import Row
from onmt_entmax.strings.task import INFLECTION, SOURCE, TARGET, Query, StringTask


def read_audited_table(
    file: Path, columns: Sequence[str], language: str, model: Path | None
) -> tuple[list[Row], StringTask]:
    """Return the rows of a table, and its task; print how the table was read.

    Args:
        file: of the table.
        columns: names of the columns; empty: they are guessed.
        language: of all rows.
        model: the model that will check the rows; languages and tags get the names that it knows.
            None: models will be trained on the table.

    Raises:
        UserError: a row cannot be read, or the model cannot answer its query.
    """
    if model is None:
        table, task = _read_table(file, columns, language, separators={})
        return table.rows, task
    loaded = load(model)
    separators = {
        SOURCE: loaded.task.source.separator,
        TARGET: loaded.task.target.separator,
    }
    table, task = _read_table(file, columns, language, separators)
    inventory = Inventory.of([loaded.vocabularies.source])
    return [_as_known(row, inventory, language, file) for row in table.rows], task


def _read_table(
    file: Path, columns: Sequence[str], language: str, separators: dict[str, str]
) -> tuple[Table, StringTask]:
    """Return the table and its task; print how it was read.

    Args:
        file: of the table.
        columns: names of the columns; empty: they are guessed.
        language: of all rows.
        separators: between the units of a column; those of other columns are guessed.

    Raises:
        UserError: a row cannot be read.
    """
    split_file = SplitFile("table", file, language)
    (table,), task = read_tables([split_file], columns, separators, INFLECTION.columns)
    refuse_bad_rows([table])
    print(f"{file}, {counted(len(table.rows), 'row')}: {table.layout}")
    return table, task


def _as_known(row: Row, inventory: Inventory, language: str, file: Path) -> Row:
    """Return a row with its language and tags as the model knows them.

    Raises:
        UserError: the model cannot answer its query.
    """
    try:
        known = inventory.checked(Question(language, row.query.source, row.query.tags))
    except UserError as error:
        raise UserError(f"{file}:{row.number}: {error}") from None
    return row._replace(query=Query(known.lemma, known.tags, known.language))
