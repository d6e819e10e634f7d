"""An epoch of several corpora, which are read in turns by their weights.

In a turn, a training stream reads as many lines of each corpus as its weight says, one corpus after
another. The epoch ends as soon as the last corpus was read once; shorter ones are read again.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from onmt_entmax.data.batch import Batch
from onmt_entmax.data.frequencies import target_frequencies
from onmt_entmax.data.stream import TrainingBatches
from tests.data.corpora import TOKENDROP, data_config, numbered_corpus, stream, until_epoch


def first_and_last_tokens(batches: TrainingBatches, batch: Batch) -> Iterator[tuple[str, str]]:
    """Yield the first and the last source token of each pair of a batch.

    They are the name of its corpus and its number, see `numbered_corpus`.
    """
    vocabulary = batches.data.vocabularies.source
    sources = batch.source[:, :, 0].t().tolist()  # (batch, length), padded
    for ids, length in zip(sources, batch.source_lengths.tolist(), strict=True):
        first, *_, last = vocabulary.decode(ids[:length])
        yield first, last


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
def test_an_epoch_ends_when_the_last_corpus_was_read_once(
    tmp_path: Path, sizes: tuple[int, int], weights: tuple[int, int], expected: tuple[int, int]
) -> None:
    """It has `expected` pairs of each corpus then."""
    corpora = [
        numbered_corpus(tmp_path, name, size, weight=weight)
        for name, size, weight in zip("xy", sizes, weights, strict=True)
    ]
    batches = stream(data_config(*corpora))
    pairs = Counter(
        name for batch in until_epoch(batches) for name, _ in first_and_last_tokens(batches, batch)
    )
    assert (pairs["x"], pairs["y"]) == expected


def test_shorter_corpora_are_read_evenly_over_epochs(tmp_path: Path) -> None:
    """Each epoch continues where the one before stopped."""
    # An epoch has 50 turns. The last one reads two lines of `long`, which ends it, so there are 49
    # lines of `short`: one and a half of its 32.
    long = numbered_corpus(tmp_path, "long", 100, weight=2)
    short = numbered_corpus(tmp_path, "short", 32, weight=1)
    batches = stream(data_config(long, short))
    readings = Counter(
        number
        for batch in until_epoch(batches, 6)
        for name, number in first_and_last_tokens(batches, batch)
        if name == "short"
    )
    assert sorted(readings.values()) == 26 * [9] + 6 * [10]  # 6 * 49 readings of 32 lines


# --- frequencies of target tokens ---


@pytest.fixture
def restarting(tmp_path: Path) -> TrainingBatches:
    """A corpus, and one of twice its weight that restarts within an epoch and drops tokens.

    Each target of the second one begins with `OTHER`, until this token is dropped.
    """
    lasting = numbered_corpus(tmp_path, size=40)
    dropping = numbered_corpus(tmp_path, "other", size=30, transforms=("tokendrop",), weight=2)
    return stream(data_config(lasting, dropping, bucket_size=32, transform_options=TOKENDROP))


@pytest.fixture
def target_counts(restarting: TrainingBatches) -> Counter[int]:
    """How often the network predicts each token, by its id, in the first epoch."""
    counts = Counter[int]()
    for batch in until_epoch(restarting):
        counts.update(batch.target[1:].flatten().tolist())  # without the start symbols
    del counts[restarting.data.vocabularies.target.pad]
    return counts


def test_target_frequencies_are_those_of_the_training_batches(
    restarting: TrainingBatches, target_counts: Counter[int]
) -> None:
    shares = target_frequencies(restarting.data).tolist()
    expected = [target_counts[token] / target_counts.total() for token in range(len(shares))]
    assert shares == pytest.approx(expected)


def test_the_start_symbol_has_no_target_frequency(restarting: TrainingBatches) -> None:
    bos = restarting.data.vocabularies.target.bos
    assert target_frequencies(restarting.data)[bos] == 0


def test_some_tokens_are_dropped_in_the_counted_epoch(
    restarting: TrainingBatches, target_counts: Counter[int]
) -> None:
    """The second corpus has two lines in each of 39 turns: the first one ends the 40th."""
    (other,) = restarting.data.vocabularies.target.encode(["OTHER"])
    assert 39 < target_counts[other] < 2 * 39
