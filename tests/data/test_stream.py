"""The stream of training batches: orders, epochs, weights of corpora, and resuming anywhere."""

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import pytest

from onmt_entmax.config import DataConfig
from onmt_entmax.data import first_reading
from onmt_entmax.data.batch import Batch, Example, make_batch
from onmt_entmax.data.frequencies import target_frequencies
from onmt_entmax.data.shapes import Shapes
from onmt_entmax.data.stream import Position, TrainingBatches
from tests.data.corpora import (
    TOKENDROP,
    data_config,
    equal_batches,
    numbered_corpus,
    pairs_of,
    stream,
    write_corpus,
)


def until_epoch(batches: TrainingBatches, epoch: int = 1) -> Iterator[Batch]:
    """Yield the batches before an epoch, which are all of the first by default."""
    for batch in batches:
        yield batch
        if batches.position.epoch == epoch:
            return


def sentence(side: str, number: int, length: int) -> str:
    """Return tokens of one side, which depend on the number of the pair."""
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


# --- pairs in memory, and pairs of files -----------------------------------------------------


class BothWays(NamedTuple):
    """Streams of the same corpora, which are kept in memory or read again in each epoch."""

    in_memory: TrainingBatches
    from_files: TrainingBatches


@pytest.mark.parametrize(
    "changes",
    [{}, {"batch_type": "tokens", "batch_size": 20}],
    ids=["batches of sentences", "batches of tokens"],
)
@pytest.mark.parametrize("padded", [False, True], ids=["packed", "padded"])
class TestPairsInMemoryAndOfFiles:
    @pytest.fixture
    def both(
        self,
        two_corpora: DataConfig,
        monkeypatch: pytest.MonkeyPatch,
        changes: dict[str, object],
        padded: bool,
    ) -> BothWays:
        config = replace(two_corpora, **changes)
        in_memory = stream(config)
        monkeypatch.setattr(first_reading, "MAX_BYTES", 0)  # so that nothing may be kept
        streams = BothWays(in_memory, from_files=stream(config))
        if padded:
            for batches in streams:
                batches.shapes = Shapes(config.batch_size, config.batch_type)
        return streams

    def test_have_the_same_vocabularies(self, both: BothWays) -> None:
        assert both.in_memory.data.vocabularies == both.from_files.data.vocabularies

    def test_have_the_same_batches_and_positions(self, both: BothWays) -> None:
        for one, other in islice(zip(*both, strict=True), 40):
            assert equal_batches(one, other)
            assert both.in_memory.position == both.from_files.position
        assert both.in_memory.position.epoch >= 2  # so the corpora were read again

    def test_continue_from_any_position_alike(self, both: BothWays) -> None:
        recorded = [
            (batch, both.in_memory.position) for batch in islice(both.in_memory, 30)
        ]  # with the position after each
        for number in range(0, 29, 7):
            _, position = recorded[number]
            expected, _ = recorded[number + 1]
            for batches in both:
                batches.position = position
                assert equal_batches(next(iter(batches)), expected)

    def test_have_the_same_target_frequencies(self, both: BothWays) -> None:
        frequencies = target_frequencies(both.in_memory.data)
        assert frequencies.equal(target_frequencies(both.from_files.data))


# --- an epoch --------------------------------------------------------------------------------

bucket_sizes = pytest.mark.parametrize("bucket_size", [1000, 20, 7])


@bucket_sizes
def test_an_epoch_holds_every_pair_once(tmp_path: Path, bucket_size: int) -> None:
    batches = stream(data_config(numbered_corpus(tmp_path, size=50), bucket_size=bucket_size))
    indices = [index for batch in until_epoch(batches) for index in batch.indices]
    assert sorted(indices) == list(range(50))


@bucket_sizes
def test_the_next_epoch_begins_behind_an_epoch(tmp_path: Path, bucket_size: int) -> None:
    batches = stream(data_config(numbered_corpus(tmp_path), bucket_size=bucket_size))
    for _ in until_epoch(batches):
        pass
    assert batches.position == Position(epoch=1)


@bucket_sizes
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


# --- resuming --------------------------------------------------------------------------------


@pytest.mark.parametrize("consumed", [0, 3, 23])
@pytest.mark.parametrize(
    ("transforms", "shortest"),
    [((), 3), (("tokendrop",), 1)],
    ids=["as they are", "tokens are dropped"],
)
def test_a_stream_continues_at_the_exact_batch(
    tmp_path: Path, consumed: int, transforms: tuple[str, ...], shortest: int
) -> None:
    corpus = numbered_corpus(tmp_path, transforms=transforms)
    config = data_config(corpus, bucket_size=20, transform_options=TOKENDROP)
    whole = stream(config)
    batches = iter(whole)
    for _ in range(consumed):
        next(batches)
    resumed = stream(config, whole.position)
    random.seed(99)  # what the program draws elsewhere does not matter
    lengths = set()
    for one, other in islice(zip(batches, resumed, strict=False), 20):
        assert equal_batches(one, other)
        assert whole.position == resumed.position
        lengths.update(one.source_lengths.tolist())
    assert min(lengths) == shortest


@pytest.fixture
def six_batches(tmp_path: Path) -> TrainingBatches:
    """An epoch of 48 pairs in six batches of eight: four of the first bucket, two of the second."""
    return stream(data_config(numbered_corpus(tmp_path, size=48), bucket_size=32))


def test_the_epoch_is_a_fraction_between_batches(six_batches: TrainingBatches) -> None:
    before = six_batches.epochs
    after_each = [six_batches.epochs for _ in islice(six_batches, 8)]
    assert [before, *after_each] == pytest.approx([number / 6 for number in range(9)])


def test_a_resumed_stream_has_an_epoch_within_its_bucket(six_batches: TrainingBatches) -> None:
    """After eight batches: the third bucket began after the sixth, and ends with the tenth.

    How many batches it has is not known before one is read, so it might be over.
    """
    for _ in islice(six_batches, 8):
        pass
    resumed = stream(six_batches.data.config, six_batches.position)
    assert 8 / 6 - 1e-6 < resumed.epochs <= 10 / 6


def test_a_resumed_stream_has_the_exact_epoch_from_its_first_batch_on(
    six_batches: TrainingBatches,
) -> None:
    for _ in islice(six_batches, 8):
        pass
    resumed = stream(six_batches.data.config, six_batches.position)
    next(iter(resumed))
    assert resumed.epochs == pytest.approx(9 / 6)


class TestTheOrder:
    """The order of 200 pairs, in 25 batches of an epoch."""

    @pytest.fixture
    def config(self, tmp_path: Path) -> DataConfig:
        return data_config(numbered_corpus(tmp_path, size=200))

    def indices(self, batches: TrainingBatches) -> list[list[int]]:
        """Return the pairs of each batch, numbered within their epoch."""
        return [[index % 200 for index in batch.indices] for batch in islice(batches, 25)]

    def test_is_the_same_for_the_same_seed(self, config: DataConfig) -> None:
        assert self.indices(stream(config)) == self.indices(stream(config))

    def test_is_another_for_another_seed(self, config: DataConfig) -> None:
        other = replace(config, seed=config.seed + 1)
        assert self.indices(stream(config)) != self.indices(stream(other))

    def test_is_another_in_each_epoch(self, config: DataConfig) -> None:
        second_epoch = stream(config, Position(epoch=1))
        assert self.indices(stream(config)) != self.indices(second_epoch)

    def test_is_not_by_length(self, config: DataConfig) -> None:
        lengths = [int(batch.source_lengths[0]) for batch in islice(stream(config), 25)]
        assert lengths not in (sorted(lengths), sorted(lengths, reverse=True))


# --- the longest line, for errors ------------------------------------------------------------


def test_the_longest_line_is_named_in_an_update_over_the_end_of_an_epoch(tmp_path: Path) -> None:
    """Each epoch is a batch of seven pairs, in which the corpus of two lines goes on in turns.

    Its second line, the longest of all, is the fourth pair of the first epoch, and the second and
    sixth pair of the second.
    """
    two_lines = write_corpus(tmp_path, "two", ["one", "a " * 9], ["one", "b " * 6])
    batches = stream(data_config(numbered_corpus(tmp_path, size=4), two_lines))
    update = list(islice(batches, 2))
    assert [len(batch) for batch in update] == [7, 7]
    expected = (
        f"{two_lines.path_src}, {two_lines.path_tgt}: line 2: a batch with its 9 source tokens and "
        "6 target tokens"
    )
    for longest_of in (update[:1], update[1:], update):
        assert batches.longest_line(longest_of) == expected


# --- corpora of different weights ------------------------------------------------------------


@pytest.mark.parametrize(
    ("sizes", "weights", "expected"),
    [
        pytest.param((4, 4), (1, 1), (4, 4), id="equal corpora, four turns"),
        pytest.param((100, 10), (100, 10), (100, 10), id="one turn"),
        pytest.param((100, 10), (10, 2), (100, 18), id="ten turns, the last without the second"),
        pytest.param((7, 3), (2, 1), (7, 3), id="four turns, the last of one line"),
        pytest.param((10, 40), (3, 1), (120, 40), id="forty turns, the first is read twelve times"),
    ],
)
def test_an_epoch_ends_with_the_last_line_of_the_longest_turn(
    tmp_path: Path, sizes: tuple[int, int], weights: tuple[int, int], expected: tuple[int, int]
) -> None:
    """A turn reads `weights` lines of each corpus; an epoch has `expected` pairs of each."""
    corpora = [
        numbered_corpus(tmp_path, name, size, weight=weight)
        for name, size, weight in zip("xy", sizes, weights, strict=True)
    ]
    batches = stream(data_config(*corpora))
    names = batches.data.vocabularies.source.encode("xy")
    firsts = Counter(
        first for batch in until_epoch(batches) for first in batch.source[0, :, 0].tolist()
    )
    assert tuple(firsts[name] for name in names) == expected


def test_shorter_corpora_are_read_evenly_over_epochs(tmp_path: Path) -> None:
    """Each epoch continues where the one before stopped."""
    config = data_config(
        numbered_corpus(tmp_path, "long", 100, weight=2), numbered_corpus(tmp_path, "short", 32)
    )
    batches = stream(config)
    counts = Counter[str]()
    vocabulary = batches.data.vocabularies.source
    for batch in until_epoch(batches, 6):
        sources = batch.source[:, :, 0].t().tolist()
        for ids, length in zip(sources, batch.source_lengths.tolist(), strict=True):
            name, *_, number = vocabulary.decode(ids[:length])
            if name == "short":
                counts[number] += 1
    assert len(counts) == 32
    # An epoch has 50 turns, two lines of the long corpus and one of the short; in the last turn,
    # the long one ends the epoch.
    assert counts.total() == 6 * 49
    assert max(counts.values()) - min(counts.values()) <= 1


def test_target_frequencies_are_those_of_the_training_batches(tmp_path: Path) -> None:
    """With a corpus of weight 2 that restarts within an epoch, and tokens dropped at random."""
    whole = numbered_corpus(tmp_path, size=40)
    dropped = numbered_corpus(tmp_path, "other", size=30, transforms=("tokendrop",), weight=2)
    config = data_config(whole, dropped, bucket_size=32, transform_options=TOKENDROP)
    batches = stream(config)
    counts = Counter[int]()
    for batch in until_epoch(batches):
        counts.update(batch.target[1:].flatten().tolist())
    target = batches.data.vocabularies.target
    del counts[target.pad]
    for token, share in enumerate(target_frequencies(batches.data).tolist()):
        assert share == pytest.approx(counts[token] / counts.total())
    assert counts[target.bos] == 0
    # OTHER begins each target of the second corpus: two in each of 39 turns, unless it is dropped.
    # The first corpus, of one line a turn, ends the epoch in the 40th turn.
    assert 39 < counts[target.encode(["OTHER"])[0]] < 78
