"""A resumed stream of training batches continues at the exact batch, and knows its epoch."""

import random
from itertools import islice
from pathlib import Path

import pytest

from onmt_entmax.data.stream import TrainingBatches
from tests.data.corpora import TOKENDROP, data_config, equal_batches, numbered_corpus, stream

# --- batches ---


@pytest.mark.parametrize("consumed", [0, 3, 23])
@pytest.mark.parametrize(
    ("transforms", "shortest"),
    [((), 3), (("tokendrop",), 1)],
    ids=["as they are", "tokens are dropped"],
)
def test_a_stream_continues_at_the_exact_batch(
    tmp_path: Path, consumed: int, transforms: tuple[str, ...], shortest: int
) -> None:
    """The shortest source shows whether tokens were dropped."""
    corpus = numbered_corpus(tmp_path, transforms=transforms)
    config = data_config(corpus, bucket_size=20, transform_options=TOKENDROP)
    uninterrupted = stream(config)
    for _ in islice(uninterrupted, consumed):
        pass
    resumed = stream(config, uninterrupted.position)
    random.seed(99)  # random numbers that the program draws elsewhere must not matter
    lengths = set()
    for expected, batch in islice(zip(uninterrupted, resumed, strict=False), 20):
        assert equal_batches(expected, batch)
        assert uninterrupted.position == resumed.position
        lengths.update(batch.source_lengths.tolist())
    assert min(lengths) == shortest


# --- the epoch ---


@pytest.fixture
def six_batches(tmp_path: Path) -> TrainingBatches:
    """Epochs of six batches of eight pairs: four of the first bucket, two of the second."""
    return stream(data_config(numbered_corpus(tmp_path, size=48), bucket_size=32))


def test_the_epoch_is_a_fraction_between_batches(six_batches: TrainingBatches) -> None:
    before = six_batches.epochs
    after_each = [six_batches.epochs for _ in islice(six_batches, 8)]
    assert [before, *after_each] == pytest.approx([number / 6 for number in range(9)])


@pytest.fixture
def resumed(six_batches: TrainingBatches) -> TrainingBatches:
    """The same stream after eight batches, the second of the third bucket."""
    for _ in islice(six_batches, 8):
        pass
    return stream(six_batches.data.config, six_batches.position)


def test_a_resumed_stream_has_an_epoch_within_its_bucket(resumed: TrainingBatches) -> None:
    """The third bucket begins after the sixth batch, and ends with the tenth.

    How many batches it has is not known before one is read, so it might be over.
    """
    assert 8 / 6 - 1e-6 < resumed.epochs <= 10 / 6


def test_a_resumed_stream_has_the_exact_epoch_from_its_first_batch_on(
    resumed: TrainingBatches,
) -> None:
    next(iter(resumed))
    assert resumed.epochs == pytest.approx(9 / 6)
