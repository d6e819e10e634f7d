"""Buckets that are read from files in each epoch: each is read once, while its turn lasts."""

from pathlib import Path

import pytest

from onmt_entmax.config import VocabularyConfig
from onmt_entmax.data import first_reading
from onmt_entmax.data.training import TrainingData
from tests.data.corpora import data_config, numbered_corpus


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TrainingData:
    """Nine pairs in buckets of four, four and one, which are not kept in memory."""
    monkeypatch.setattr(first_reading, "MAX_BYTES", 0)
    return TrainingData.read(
        data_config(numbered_corpus(tmp_path, size=9), bucket_size=4), VocabularyConfig()
    )


def test_buckets_have_the_pairs_of_an_epoch(data: TrainingData) -> None:
    assert [len(read("seed").rows) for read in data.buckets(0)] == [4, 4, 1]


def test_a_bucket_is_not_read_twice(data: TrainingData) -> None:
    read = next(data.buckets(0))
    read("seed")
    with pytest.raises(RuntimeError, match=r"^a bucket is read once"):
        read("seed")


def test_a_bucket_is_not_read_after_the_next_was_taken(data: TrainingData) -> None:
    first, *_ = data.buckets(0)
    with pytest.raises(RuntimeError, match=r"before the next one is taken$"):
        first("seed")


def test_a_bucket_is_the_same_whether_others_were_read_or_not(data: TrainingData) -> None:
    *_, last_of_all_read = [read("seed").pairs.source.ids for read in data.buckets(0)]
    buckets = data.buckets(0)
    next(buckets), next(buckets)
    assert next(buckets)("seed").pairs.source.ids.tolist() == last_of_all_read.tolist()
