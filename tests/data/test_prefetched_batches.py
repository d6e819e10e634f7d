"""Prefetched streams of training batches: the batches are those of one process, and errors."""

import threading
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import pytest

from onmt_entmax.data import prefetch
from onmt_entmax.data.corpus import CorpusError
from onmt_entmax.data.stream import Position, TrainingBatches
from onmt_entmax.errors import UserError
from tests.data.corpora import stream, transformed_corpora

# --- batches ---


class ReadBatch(NamedTuple):
    """A batch of a stream, to compare, and the position after it."""

    indices: Sequence[int]
    source: list[object]
    target: list[object]
    source_lengths: list[int]
    position: Position


def first_batches(batches: TrainingBatches, count: int) -> list[ReadBatch]:
    """Return the first batches of a stream."""
    return [
        ReadBatch(
            batch.indices,
            batch.source.tolist(),
            batch.target.tolist(),
            batch.source_lengths.tolist(),
            batches.position,
        )
        for batch in islice(batches, count)
    ]


SEVERAL_EPOCHS = 60  # batches of `transformed_corpora`, of which an epoch has twelve
FURTHER = 20  # batches after a resumed one: more than an epoch


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_any_number_of_workers_gives_the_same_batches(tmp_path: Path, workers: int) -> None:
    expected = first_batches(stream(transformed_corpora(tmp_path)), SEVERAL_EPOCHS)
    assert expected[-1].position.epoch > 2
    prefetched = stream(transformed_corpora(tmp_path, queue_size=3), workers=workers)
    assert first_batches(prefetched, SEVERAL_EPOCHS) == expected


@pytest.mark.parametrize("workers", [1, 2, 5])
@pytest.mark.parametrize(
    "number",
    [
        pytest.param(0, id="the first batch"),
        pytest.param(8, id="a batch of the third bucket"),
        pytest.param(16, id="a batch of the second epoch"),
    ],
)
def test_any_number_of_workers_resumes_after_a_batch(
    tmp_path: Path, workers: int, number: int
) -> None:
    batches = first_batches(stream(transformed_corpora(tmp_path)), number + 1 + FURTHER)
    resumed = stream(transformed_corpora(tmp_path), batches[number].position, workers)
    assert first_batches(resumed, FURTHER) == batches[number + 1 :]


def test_spawned_workers_give_the_same_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = first_batches(stream(transformed_corpora(tmp_path)), 30)
    monkeypatch.setattr(prefetch, "START_METHOD", "spawn")
    assert first_batches(stream(transformed_corpora(tmp_path), workers=1), 30) == expected


# --- errors ---


def test_an_error_of_a_worker_is_raised_here(tmp_path: Path) -> None:
    config = transformed_corpora(tmp_path, skip_empty_level="error")
    batches = stream(config, workers=2)
    path = Path(config.corpora[1].path_src)
    path.write_text(path.read_text().replace("large a 0", ""))  # the first line, after the check
    with pytest.raises(CorpusError, match="line 1 is empty on one side"):
        first_batches(batches, SEVERAL_EPOCHS)


def test_a_system_without_threads_is_an_error_with_advice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_thread = threading.Thread.start

    def fail_in_workers(thread: threading.Thread) -> None:
        """Fail as Python does at the system's limit, for the threads of prefetching alone."""
        if getattr(thread._target, "__module__", "") == prefetch.__name__:
            raise RuntimeError("can't start new thread")
        start_thread(thread)

    monkeypatch.setattr(prefetch, "START_METHOD", "fork")
    monkeypatch.setattr(threading.Thread, "start", fail_in_workers)
    with pytest.raises(UserError, match=r"^no thread can be started; .* num_workers: 0$"):
        first_batches(stream(transformed_corpora(tmp_path), workers=1), 1)
