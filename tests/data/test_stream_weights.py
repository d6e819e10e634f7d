"""An epoch of several corpora: turns by their weights, and frequencies of target tokens.

In a turn, a training stream reads as many lines of each corpus as its weight says.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from onmt_entmax.data.batch import Batch
from onmt_entmax.data.frequencies import target_frequencies
from onmt_entmax.data.stream import TrainingBatches
from tests.data.corpora import TOKENDROP, data_config, numbered_corpus, stream, until_epoch


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
    """An epoch has `expected` pairs of each corpus."""
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
    """Each epoch continues where the one before stopped.

    An epoch has 50 turns, of two lines of the long corpus and one of the short one; in the last
    turn, the long one ends the epoch.
    """
    batches = stream(
        data_config(
            numbered_corpus(tmp_path, "long", 100, weight=2), numbered_corpus(tmp_path, "short", 32)
        )
    )
    readings = Counter(
        number
        for batch in until_epoch(batches, 6)
        for name, number in first_and_last_tokens(batches, batch)
        if name == "short"
    )
    assert len(readings) == 32
    assert readings.total() == 6 * 49
    assert max(readings.values()) - min(readings.values()) <= 1


def first_and_last_tokens(batches: TrainingBatches, batch: Batch) -> Iterator[tuple[str, str]]:
    """Yield the first and the last source token of each pair of a batch."""
    vocabulary = batches.data.vocabularies.source
    sources = batch.source[:, :, 0].t().tolist()  # (batch, length), padded
    for ids, length in zip(sources, batch.source_lengths.tolist(), strict=True):
        first, *_, last = vocabulary.decode(ids[:length])
        yield first, last


# --- frequencies of target tokens ---


@pytest.fixture
def restarting(tmp_path: Path) -> TrainingBatches:
    """A corpus, and one of twice its weight that restarts within an epoch and drops tokens.

    `OTHER` begins each target of the second one, unless it is dropped.
    """
    lasting = numbered_corpus(tmp_path, size=40)
    dropping = numbered_corpus(tmp_path, "other", size=30, transforms=("tokendrop",), weight=2)
    return stream(data_config(lasting, dropping, bucket_size=32, transform_options=TOKENDROP))


@pytest.fixture
def target_counts(restarting: TrainingBatches) -> Counter[int]:
    """How often each token, by its number, is to be predicted in the first epoch."""
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
