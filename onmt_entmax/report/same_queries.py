"""Predicted tables that are compared must have predictions of the same rows."""

from collections.abc import Sequence
from pathlib import Path

from onmt_entmax.errors import UserError, counted
from onmt_entmax.report.predicted_tables import Predictions, query_text


def refuse_different_queries(
    first: Predictions, second: Predictions, paths: Sequence[Path], others: Sequence[Path]
) -> None:
    """Refuse to compare predictions of different rows.

    Args:
        first: of the tables `paths`.
        second: of the tables `others`.
        paths: the tables that are evaluated.
        others: those that they are compared with.

    Raises:
        UserError: one side has a query that the other lacks.
    """
    _refuse_missing_queries(first, paths, second, others)
    _refuse_missing_queries(second, others, first, paths)


def _refuse_missing_queries(
    complete: Predictions, paths: Sequence[Path], other: Predictions, other_paths: Sequence[Path]
) -> None:
    """Refuse predictions that lack a query of others.

    Raises:
        UserError: `other` has no prediction for a query of `complete`.
    """
    missing = [query for query in complete.by_query if query not in other.by_query]
    if missing:
        raise UserError(
            f"{named_together(other_paths)}: has no prediction for {len(missing):,} of "
            f"{counted(len(complete.by_query), 'row')} of {named_together(paths)}, such as "
            f"{query_text(missing[0])}; --against compares predictions of the same rows"
        )


def named_together(paths: Sequence[Path]) -> str:
    """Return the name of tables for people: that of their folder if there are several."""
    if len(paths) == 1:
        return str(paths[0])
    folders = {path.parent for path in paths}
    return str(paths[0].parent) if len(folders) == 1 else f"{paths[0]}, ..."
