"""The stream of training batches: the pairs of an epoch, and their order."""

from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

from onmt_entmax.config import DataConfig
from onmt_entmax.data.batch import Example, make_batch
from onmt_entmax.data.stream import Position, TrainingBatches
from tests.data.corpora import (
    data_config,
    equal_batches,
    numbered_corpus,
    pairs_of,
    stream,
    until_epoch,
    write_corpus,
)

# --- an epoch ---

# One bucket of all 50 pairs; and several, of more or fewer pairs than a batch, which has eight.
each_bucket_size = pytest.mark.parametrize("bucket_size", [1000, 20, 7])


@each_bucket_size
def test_an_epoch_has_every_pair_once(tmp_path: Path, bucket_size: int) -> None:
    batches = stream(data_config(numbered_corpus(tmp_path, size=50), bucket_size=bucket_size))
    indices = [index for batch in until_epoch(batches) for index in batch.indices]
    assert sorted(indices) == list(range(50))


@each_bucket_size
def test_the_next_epoch_begins_after_the_last_batch(tmp_path: Path, bucket_size: int) -> None:
    batches = stream(data_config(numbered_corpus(tmp_path), bucket_size=bucket_size))
    for _ in until_epoch(batches):
        pass
    assert batches.position == Position(epoch=1)


@each_bucket_size
def test_a_batch_is_made_of_the_pairs_of_its_indices(tmp_path: Path, bucket_size: int) -> None:
    corpus = numbered_corpus(tmp_path)
    batches = stream(data_config(corpus, bucket_size=bucket_size))
    vocabularies = batches.data.vocabularies
    examples = [
        Example(vocabularies.source.encode(source), vocabularies.target.encode(target), number)
        for number, (source, target) in enumerate(pairs_of(corpus))
    ]
    for batch in until_epoch(batches):
        expected = make_batch([examples[index] for index in batch.indices], vocabularies)
        assert equal_batches(batch, expected)


# --- the order of pairs ---

PAIRS, BATCHES = 200, 25  # of an epoch


@pytest.fixture
def config(tmp_path: Path) -> DataConfig:
    """A corpus of 200 pairs, which are 25 batches of eight."""
    return data_config(numbered_corpus(tmp_path, size=PAIRS))


def order(batches: TrainingBatches) -> list[list[int]]:
    """Return the pairs of each batch of an epoch, numbered from 0 in the epoch."""
    return [[index % PAIRS for index in batch.indices] for batch in islice(batches, BATCHES)]


def test_equal_seeds_give_the_same_order(config: DataConfig) -> None:
    assert order(stream(config)) == order(stream(config))


def test_another_seed_gives_another_order(config: DataConfig) -> None:
    other = replace(config, seed=config.seed + 1)
    assert order(stream(config)) != order(stream(other))


def test_each_epoch_has_another_order(config: DataConfig) -> None:
    second_epoch = stream(config, Position(epoch=1))
    assert order(stream(config)) != order(second_epoch)


def test_batches_are_not_in_the_order_of_length(config: DataConfig) -> None:
    lengths = [int(batch.source_lengths[0]) for batch in islice(stream(config), BATCHES)]
    assert lengths not in (sorted(lengths), sorted(lengths, reverse=True))


# --- the longest line, for errors ---


@pytest.mark.parametrize(
    "batches", [slice(0, 1), slice(1, 2), slice(0, 2)], ids=["first epoch", "second epoch", "both"]
)
def test_the_longest_line_of_an_update_is_named(tmp_path: Path, batches: slice) -> None:
    """The batches of an update may belong to two epochs."""
    # An epoch is one batch of seven pairs: four of the numbered corpus, and three of the other one.
    # The second line of the latter is the longest of all; the second epoch has it twice.
    two_lines = write_corpus(tmp_path, "two", ["one", "a " * 9], ["one", "b " * 6])
    training = stream(data_config(numbered_corpus(tmp_path, size=4), two_lines))
    epochs = list(islice(training, 2))
    assert [len(batch) for batch in epochs] == [7, 7]
    assert training.longest_line(epochs[batches]) == (
        f"{two_lines.path_src}, {two_lines.path_tgt}: line 2: a batch with its 9 source tokens and "
        "6 target tokens"
    )
