"""The training batches of benchmarks."""

from itertools import islice

import pytest

from onmt_entmax.data.batch import Batch
from onmt_entmax.errors import UserError
from tools.bench.batches import Corpus, vocabularies_of

PAIRS = [(["a"] * n, ["b"] * n) for n in range(1, 7)]
CORPUS = Corpus(PAIRS, vocabularies_of(PAIRS, 12, joint=True))
SEVERAL_BUCKETS = 7  # batches; a bucket of six pairs has three of two


def first_batches(batch_size: int, bucket_size: int) -> list[Batch]:
    """Return the first of endlessly many batches: those of several buckets."""
    return list(islice(CORPUS.batches(batch_size, bucket_size), SEVERAL_BUCKETS))


def test_batches_are_the_same_at_every_call() -> None:
    first, again = (first_batches(batch_size=2, bucket_size=6) for _ in range(2))
    assert all(one.source.equal(two.source) for one, two in zip(first, again, strict=True))


def test_batches_that_are_not_full_are_left_out() -> None:
    """A bucket of five pairs has two full batches, and one of a single pair."""
    batches = first_batches(batch_size=2, bucket_size=5)
    assert [len(batch) for batch in batches] == [2] * SEVERAL_BUCKETS


def test_buckets_are_different_samples() -> None:
    """Batches as large as their bucket are not all equal."""
    first, *others = first_batches(batch_size=6, bucket_size=6)
    assert not all(batch.source.equal(first.source) for batch in others)


@pytest.mark.parametrize(("batch_size", "bucket_size"), [(7, 7), (4, 3)], ids=["text", "bucket"])
def test_a_batch_that_is_never_full_is_refused(batch_size: int, bucket_size: int) -> None:
    """Otherwise no batch would ever come."""
    with pytest.raises(UserError, match=f"no batch of {batch_size}: 6 pairs"):
        next(CORPUS.batches(batch_size, bucket_size))
