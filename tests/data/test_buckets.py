"""Buckets that are read from files in each epoch: each is read once, while its turn lasts."""

from pathlib import Path

import pytest

from onmt_entmax.config import VocabularyConfig
from onmt_entmax.data import first_reading
from onmt_entmax.data.buckets import BucketPairs
from onmt_entmax.data.training import TrainingData
from tests.data.corpora import data_config, numbered_corpus

SEED = "seed"  # of the random transforms, of which this corpus has none


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TrainingData:
    """Nine pairs in buckets of four, four and one, which are not kept in memory."""
    monkeypatch.setattr(first_reading, "MAX_BYTES", 0)
    corpus = numbered_corpus(tmp_path, size=9)
    return TrainingData.read(data_config(corpus, bucket_size=4), VocabularyConfig())


def pair_numbers(bucket: BucketPairs) -> list[int]:
    """Return the numbers of the pairs, with which their sources end."""
    tokens = bucket.pairs.vocabularies.source.decode(bucket.pairs.source.ids.tolist())
    return [int(token) for token in tokens if token.isdigit()]


def test_the_buckets_of_an_epoch_have_each_pair_once(data: TrainingData) -> None:
    numbers = [pair_numbers(bucket.read(SEED)) for bucket in data.buckets(0)]
    assert numbers == [[0, 1, 2, 3], [4, 5, 6, 7], [8]]


def test_a_bucket_is_not_read_twice(data: TrainingData) -> None:
    bucket = next(data.buckets(0))
    bucket.read(SEED)
    with pytest.raises(RuntimeError, match=r"^a bucket is read once"):
        bucket.read(SEED)


def test_a_bucket_is_not_read_after_the_next_was_taken(data: TrainingData) -> None:
    first, *_ = data.buckets(0)
    with pytest.raises(RuntimeError, match=r"before the next one is taken$"):
        first.read(SEED)


def test_a_bucket_is_the_same_if_the_first_was_not_read(data: TrainingData) -> None:
    buckets = data.buckets(0)
    next(buckets)
    assert pair_numbers(next(buckets).read(SEED)) == [4, 5, 6, 7]
