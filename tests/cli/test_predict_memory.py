"""`onmt-entmax predict` holds a window of a table in memory, not the whole."""

import tracemalloc
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from onmt_entmax import Transducer
from onmt_entmax.cli import predict_tables
from onmt_entmax.prediction import Prediction
from onmt_entmax.strings.task import Query
from tests.cli.predicting import predicted
from tests.cli.tables import write_table

WORD = "abcd" * 8


@pytest.fixture
def same_prediction(phones_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give all queries the same prediction, without a search; a window has a hundred of them."""
    prediction = Transducer(phones_model).predict("ab")

    def predictions(
        transducer: Transducer, queries: Iterable[Query], batch_size: int
    ) -> Iterator[Prediction]:
        return (prediction for _ in queries)

    monkeypatch.setattr(Transducer, "predictions", predictions)
    monkeypatch.setattr(predict_tables, "WINDOW", 100)


def largest_memory(model: Path, folder: Path, rows: int) -> int:
    """Predict a table; return the largest number of bytes that Python's objects took meanwhile."""
    table = write_table(folder / "words.tsv", *[WORD] * rows)
    tracemalloc.start()
    try:
        assert predicted(model, table, "--output", folder / "out.tsv", "--details") == 0
        _, peak = tracemalloc.get_traced_memory()
        return peak
    finally:
        tracemalloc.stop()


@pytest.mark.usefixtures("same_prediction")
def test_memory_does_not_grow_with_the_table(phones_model: Path, tmp_path: Path) -> None:
    """A table is checked and then predicted; three times as many rows take as much memory."""
    largest_memory(phones_model, tmp_path, 1)  # of modules that the first call imports
    few = largest_memory(phones_model, tmp_path, 2_000)
    assert largest_memory(phones_model, tmp_path, 6_000) < 1.1 * few
