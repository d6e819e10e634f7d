"""A resumed stream of training batches continues at the exact batch, and knows its epoch."""

import random
from itertools import islice
from pathlib import Path

import pytest

from onmt_entmax.data.stream import TrainingBatches
from tests.data.corpora import TOKENDROP, data_config, equal_batches, numbered_corpus, stream

# --- batches ---


def resume_after(uninterrupted: TrainingBatches, count: int) -> TrainingBatches:
    """Read so many batches of a stream; return another stream that continues at its position."""
    for _ in islice(uninterrupted, count):
        pass
    return stream(uninterrupted.data.config, uninterrupted.position)


@pytest.mark.parametrize("consumed", [0, 3, 23])  # batches; an epoch has eight
@pytest.mark.parametrize("transforms", [(), ("tokendrop",)], ids=["none", "tokendrop"])
def test_a_stream_continues_at_the_exact_batch(
    tmp_path: Path, consumed: int, transforms: tuple[str, ...]
) -> None:
    corpus = numbered_corpus(tmp_path, transforms=transforms)
    uninterrupted = stream(data_config(corpus, bucket_size=20, transform_options=TOKENDROP))
    resumed = resume_after(uninterrupted, consumed)
    random.seed(99)  # random numbers that the program draws elsewhere must not matter
    for expected, batch in islice(zip(uninterrupted, resumed, strict=False), 20):
        assert equal_batches(expected, batch)
        assert uninterrupted.position == resumed.position


def test_a_resumed_stream_drops_tokens_at_random(tmp_path: Path) -> None:
    """Before the transform, each source has three tokens or more."""
    corpus = numbered_corpus(tmp_path, transforms=("tokendrop",))
    uninterrupted = stream(data_config(corpus, bucket_size=20, transform_options=TOKENDROP))
    resumed = resume_after(uninterrupted, 3)
    assert min(int(batch.source_lengths.min()) for batch in islice(resumed, 20)) == 1


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
    """The stream from its ninth batch on, the third of the third bucket."""
    return resume_after(six_batches, 8)


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
