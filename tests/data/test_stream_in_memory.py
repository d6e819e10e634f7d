"""Training pairs in memory make the same stream as pairs read from files in each epoch."""

from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import pytest

from onmt_entmax.config import DataConfig
from onmt_entmax.data import first_reading
from onmt_entmax.data.frequencies import target_frequencies
from onmt_entmax.data.shapes import Shapes
from onmt_entmax.data.stream import TrainingBatches
from tests.data.corpora import data_config, equal_batches, stream, write_corpus


def sentence(side: str, number: int, length: int) -> str:
    """Return tokens of one side, such as `src0 src3`, which depend on the number of the pair."""
    return " ".join(f"{side}{number * k % 5}" for k in range(length))


def mixed_lengths(size: int) -> tuple[list[str], list[str]]:
    """Return sources and targets of 1 to 8 tokens; those of a pair have different lengths."""
    sources = [sentence("src", n, 1 + n * 3 % 8) for n in range(size)]
    return sources, [sentence("tgt", n, 1 + n * 2 % 8) for n in range(size)]


@pytest.fixture
def two_corpora(tmp_path: Path) -> DataConfig:
    """Two corpora of different weight; the first has an empty line and a filter."""
    sources, targets = mixed_lengths(23)
    filtered = write_corpus(
        tmp_path, "a", ["", *sources], ["", *targets], weight=2, transforms=("filtertoolong",)
    )
    whole = write_corpus(tmp_path, "b", *mixed_lengths(7))
    return data_config(
        filtered,
        whole,
        batch_size=4,
        bucket_size=11,
        skip_empty_level="silent",
        tgt_seq_length_trunc=5,
        transform_options={"src_seq_length": 6, "tgt_seq_length": 6},
    )


class BothWays(NamedTuple):
    """Streams of the same corpora, which are kept in memory or read again in each epoch."""

    in_memory: TrainingBatches
    from_files: TrainingBatches


@pytest.fixture(
    params=[{}, {"batch_type": "tokens", "batch_size": 20}],
    ids=["batches of sentences", "batches of tokens"],
)
def config(two_corpora: DataConfig, request: pytest.FixtureRequest) -> DataConfig:
    """Both corpora, in batches of four sentences or of 20 tokens."""
    return replace(two_corpora, **request.param)


@pytest.fixture(params=[False, True], ids=["packed", "padded"])
def both(
    config: DataConfig, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> BothWays:
    """Both streams, of batches for packed encoders or of batches that are padded to few shapes."""
    in_memory = stream(config)
    monkeypatch.setattr(first_reading, "MAX_BYTES", 0)  # so that nothing may be kept
    streams = BothWays(in_memory, from_files=stream(config))
    is_padded = request.param
    if is_padded:
        for batches in streams:
            batches.shapes = Shapes(config.batch_size, config.batch_type)
    return streams


def test_only_one_of_the_streams_keeps_its_pairs(both: BothWays) -> None:
    assert both.in_memory.data.pairs is not None
    assert both.from_files.data.pairs is None


def test_both_streams_have_the_same_vocabularies(both: BothWays) -> None:
    assert both.in_memory.data.vocabularies == both.from_files.data.vocabularies


def test_both_streams_have_the_same_batches_and_positions(both: BothWays) -> None:
    for kept, read in islice(zip(*both, strict=True), 40):
        assert equal_batches(kept, read)
        assert both.in_memory.position == both.from_files.position
    assert both.in_memory.position.epoch >= 2, "the corpora should be read again"


def test_both_streams_continue_alike_from_any_position(both: BothWays) -> None:
    batches, positions = [], []  # positions are those after each batch
    for batch in islice(both.in_memory, 30):
        batches.append(batch)
        positions.append(both.in_memory.position)
    for number in range(0, 29, 7):  # some of them, since each resumed stream reads a bucket
        for resumed in both:
            resumed.position = positions[number]
            assert equal_batches(next(iter(resumed)), batches[number + 1])


def test_both_streams_have_the_same_target_frequencies(both: BothWays) -> None:
    frequencies = target_frequencies(both.in_memory.data)
    assert frequencies.equal(target_frequencies(both.from_files.data))
