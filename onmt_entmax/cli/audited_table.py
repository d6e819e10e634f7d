"""Read the table that `audit` checks, and spell its languages and tags as a model knows them."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from onmt_entmax.checkpoint import LoadedModel, read_cells
from onmt_entmax.cli.messages import warn
from onmt_entmax.cli.split_files import SplitFile
from onmt_entmax.cli.table_bad_rows import refuse_bad_rows
from onmt_entmax.cli.tables import Table, read_tables
from onmt_entmax.errors import UserError
from onmt_entmax.inventory import Inventory
from onmt_entmax.strings.cells import trained_order
from onmt_entmax.strings.character_checks import share
from onmt_entmax.strings.languages import known_as
from onmt_entmax.strings.tables import Row
from onmt_entmax.strings.task import INFLECTION, SOURCE, TAGS, TARGET, Query, StringTask


def read_audited_table(
    file: Path, columns: Sequence[str], *, language: str, model_task: StringTask | None
) -> tuple[Table, StringTask]:
    """Return a table and its task.

    Args:
        file: path of the table.
        columns: names of the columns; empty: they are guessed.
        language: language of all rows.
        model_task: task of the model that will check the rows; the table has its units. None:
            models will be trained on the table, and its units are guessed.

    Raises:
        UserError: a row cannot be read.
    """
    separators: Mapping[str, str] = {}
    if model_task is not None:
        separators = {
            SOURCE: model_task.source.separator,
            TARGET: model_task.target.separator,
            TAGS: model_task.tag_separator,
        }
    (table,), task = read_tables(
        [SplitFile("table", file, language)],
        columns,
        separators=separators,
        fallback=INFLECTION.columns,
        model_task=model_task,
    )
    refuse_bad_rows([table])
    return table, task


def rows_for_model(table: Table, model: LoadedModel) -> list[Row]:
    """Return the rows of a table, with languages and tags spelled as a model knows them.

    Warn of rows whose tags training had only in another order.

    Args:
        table: a table without bad rows.
        model: the model that will check the rows.

    Raises:
        UserError: the model cannot answer the query of a row.
    """
    inventory = Inventory.of([model.vocabularies.source])
    rows = [row._replace(query=_known_query(table, row, inventory)) for row in table.rows]
    cells = read_cells(model.folder)
    reordered = [
        row for row in rows if trained_order(cells, row.query.language, row.query.tags) is not None
    ]
    if reordered:
        warn(
            f"{table.path}: rows with tags in another order than in training, which is another "
            f"query: {share(reordered, rows)}"
        )
    return rows


def _known_query(table: Table, row: Row, inventory: Inventory) -> Query:
    """Return the query of a row, with language and tags spelled as a model knows them.

    Raises:
        UserError: the model cannot answer the query, or a column has another language than
            `--language` names.
    """
    try:
        query = inventory.checked_query(row.query._replace(language=table.language))
    except UserError as error:
        raise UserError(f"{table.path}:{row.number}: {error}") from None
    language = known_as(row.query.language, inventory.languages)
    if language != query.language:
        raise UserError(
            f"{table.path}:{row.number}: its language is {language}, but --language names "
            f"{query.language}; audit the rows of one language at a time"
        )
    return query
