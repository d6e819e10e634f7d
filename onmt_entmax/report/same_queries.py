"""The two sides of a comparison of predicted tables, and the queries that one of them lacks."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from onmt_entmax.errors import counted
from onmt_entmax.report.predicted_tables import Predictions, query_text


@dataclass(frozen=True)
class Side:
    """One side of a comparison.

    Attributes:
        paths: its predicted tables.
        predictions: predictions of all these tables.
    """

    paths: Sequence[Path]
    predictions: Predictions

    @property
    def name(self) -> str:
        """The name in messages: a single table, or the folder of several."""
        if len(self.paths) == 1:
            return str(self.paths[0])
        folders = {path.parent for path in self.paths}
        return str(self.paths[0].parent) if len(folders) == 1 else f"{self.paths[0]}, ..."


def missing_predictions_text(first: Side, second: Side) -> str:
    """Return which predictions one side lacks and the other has; empty if the queries are equal."""
    return _lacking_text(second, first) or _lacking_text(first, second)


def _lacking_text(side: Side, other: Side) -> str:
    """Return how many queries of the other side a side does not predict; empty if none."""
    queries = other.predictions.by_query
    missing = [query for query in queries if query not in side.predictions.by_query]
    if not missing:
        return ""
    return (
        f"{side.name}: has no prediction for {len(missing):,} of {counted(len(queries), 'row')} of "
        f"{other.name}, such as {query_text(missing[0])}"
    )
