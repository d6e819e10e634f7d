"""The training batches of benchmarks."""

import pytest

from onmt_entmax.errors import UserError
from tools.bench.batches import Corpus, vocabularies_of

PAIRS = [(["a"] * n, ["b"] * n) for n in range(1, 7)]
CORPUS = Corpus(PAIRS, vocabularies_of(PAIRS, 12, joint=True))


def test_batches_are_full_and_the_same_at_every_call() -> None:
    first, again = (CORPUS.batches(batch_size=2, bucket_size=6) for _ in range(2))
    batches = [next(first) for _ in range(7)]
    assert {len(batch) for batch in batches} == {2}
    assert all(batch.source.equal(next(again).source) for batch in batches)


@pytest.mark.parametrize(("batch_size", "bucket_size"), [(7, 7), (4, 3)], ids=["text", "bucket"])
def test_a_batch_that_is_never_full_is_refused(batch_size: int, bucket_size: int) -> None:
    """Otherwise no batch would ever come."""
    with pytest.raises(UserError, match=f"no batch of {batch_size}: 6 pairs"):
        next(CORPUS.batches(batch_size, bucket_size))
