"""Read the training tables of `predict --analogies`; print how often their analogies are right."""

from collections.abc import Sequence
from pathlib import Path

from onmt_entmax.checkpoint import LoadedModel
from onmt_entmax.cli.messages import note, warn
from onmt_entmax.cli.query_files import TableFile
from onmt_entmax.cli.query_tables import rows_and_bad_rows, with_layout
from onmt_entmax.errors import UserError, counted
from onmt_entmax.files import is_stream
from onmt_entmax.strings.analogies import Analogies
from onmt_entmax.strings.tables import ColumnsError, Row
from onmt_entmax.strings.task import Query
from onmt_entmax.transducer import Transducer


def analogy_pairs(
    paths: Sequence[Path], models: Sequence[LoadedModel], language: str | None
) -> list[tuple[Query, str]]:
    """Return the queries and targets of training tables.

    Rows that cannot be read, or have no target, are left out; a warning counts them.

    Args:
        paths: paths of the tables.
        models: models of the same task.
        language: value of `--language`, for tables that have no language in a column or in their
            name.

    Raises:
        UserError: a table cannot be read, or none of its rows can be.
    """
    if not paths:
        return []
    reader = Transducer(models)  # predicts nothing, but checks queries as the models need them
    pairs: list[tuple[Query, str]] = []
    for path in paths:
        if is_stream(path):
            raise UserError(f"--analogies: {path} is a stream, but is read more than once")
        file = TableFile(path, str(path), output=None)
        try:
            table = with_layout(file, reader, (), language, own_language=True)
        except ColumnsError as error:  # its advice is on --columns, which names those of queries
            raise ColumnsError(f"--analogies: {error.problem}", option="") from None
        rows = list(rows_and_bad_rows(table, reader))
        table_pairs = [
            (row.query, row.target)
            for row in rows
            if isinstance(row, Row) and reader.task.target.problem(row.target) is None
        ]
        if not table_pairs:
            raise UserError(f"--analogies: {path}: no row with a target that can be read")
        if len(table_pairs) < len(rows):
            missing = len(rows) - len(table_pairs)
            warn(f"{path}: {missing:,} of {counted(len(rows), 'row')} cannot be read; left out")
        pairs += table_pairs
    return pairs


def print_accuracies(analogies: Analogies) -> None:
    """Print how often analogies are right; the more often, the more their votes count."""
    rates = [100 * measured.accuracy for measured in analogies.measured.values()]
    least, most = round(min(rates)), round(max(rates))
    languages = "" if len(rates) == 1 else f", by language ({len(rates)})"
    percent = f"{most} %" if least == most else f"{least} to {most} %"
    note(f"analogies with other training words are right for {percent} of them{languages}")
