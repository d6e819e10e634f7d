"""Prefetching processes: the same batches and errors, and no process outlives its parent."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import pytest

from onmt_entmax.config import DataConfig
from onmt_entmax.data import prefetch
from onmt_entmax.data.corpus import CorpusError
from onmt_entmax.data.stream import Position, TrainingBatches
from onmt_entmax.errors import UserError
from tests.commands import ENVIRONMENT, started
from tests.data.corpora import TOKENDROP, data_config, numbered_corpus, stream


def config(folder: Path, **changes: object) -> DataConfig:
    """Return two corpora with a random transform and a filter: over three buckets per epoch."""
    options = {**TOKENDROP, "src_seq_length": 4, "tgt_seq_length": 4}
    transforms = ("filtertoolong", "tokendrop")
    small = numbered_corpus(folder, "small", 10, weight=2, transforms=transforms)
    large = numbered_corpus(folder, "large", 40, transforms=transforms)
    return data_config(small, large, bucket_size=35, transform_options=options, **changes)


class Read(NamedTuple):
    """A batch of a stream, to compare, and the position after it."""

    indices: Sequence[int]
    source: list[object]
    target: list[object]
    source_lengths: list[int]
    position: Position


def first_batches(batches: TrainingBatches, count: int) -> list[Read]:
    """Return the first batches of a stream."""
    return [
        Read(
            batch.indices,
            batch.source.tolist(),
            batch.target.tolist(),
            batch.source_lengths.tolist(),
            batches.position,
        )
        for batch in islice(batches, count)
    ]


def workers_of(pid: int) -> list[int]:
    """Return the live child processes of `pid`; one that has ended may still be there, as Z."""
    if not Path("/proc/self/task").is_dir():
        pytest.skip("finds processes through /proc")
    children = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        children += [int(child) for child in (task / "children").read_text().split()]
    alive = []
    for child in children:
        with suppress(OSError):  # it has ended meanwhile
            if " Z " not in Path(f"/proc/{child}/stat").read_text():
                alive.append(child)
    return alive


def three_numbers() -> Iterator[int]:
    return iter(range(3))


def one_number_and_a_bug() -> Iterator[int]:
    yield 0
    raise ZeroDivisionError


def test_a_process_ends_with_its_iterator() -> None:
    with closing(prefetch.PrefetchProcess(three_numbers, depth=2)) as process:
        assert [*process] == [*three_numbers()]
        assert [*process] == []


def test_a_bug_of_the_iterator_is_no_end_of_it(capfd: pytest.CaptureFixture[str]) -> None:
    with closing(prefetch.PrefetchProcess(one_number_and_a_bug, depth=2)) as process:
        assert next(process) == 0
        with pytest.raises(UserError, match="exit code 1"):
            next(process)
    assert "ZeroDivisionError" in capfd.readouterr().err


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_any_number_of_workers_gives_the_same_batches(tmp_path: Path, workers: int) -> None:
    expected = first_batches(stream(config(tmp_path)), 60)
    assert expected[-1].position.epoch > 2, "some epochs should end among so many batches"
    prefetched = stream(config(tmp_path, queue_size=3), workers=workers)
    assert first_batches(prefetched, 60) == expected


@pytest.mark.parametrize("workers", [1, 2, 5])
@pytest.mark.parametrize("number", [0, 8, 16])
def test_any_number_of_workers_continues_after_a_batch(
    tmp_path: Path, workers: int, number: int
) -> None:
    expected = first_batches(stream(config(tmp_path)), number + 21)
    resumed = stream(config(tmp_path), expected[number].position, workers)
    assert first_batches(resumed, 20) == expected[number + 1 :]


def test_spawned_workers_give_the_same_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = first_batches(stream(config(tmp_path)), 30)
    monkeypatch.setattr(prefetch, "START_METHOD", "spawn")
    assert first_batches(stream(config(tmp_path), workers=1), 30) == expected


def test_errors_come_as_they_are(tmp_path: Path) -> None:
    strict = config(tmp_path, skip_empty_level="error")
    batches = stream(strict, workers=2)
    path = Path(strict.corpora[1].path_src)
    path.write_text(path.read_text().replace("large a 0", ""))
    with pytest.raises(CorpusError, match="line 1 is empty on one side"):
        first_batches(batches, 60)


def test_a_worker_that_dies_is_one_line(tmp_path: Path) -> None:
    before = set(workers_of(os.getpid()))
    batches = iter(stream(config(tmp_path, queue_size=1), workers=1))
    next(batches)
    (worker,) = set(workers_of(os.getpid())) - before
    os.kill(worker, signal.SIGKILL)
    with pytest.raises(UserError, match="exit code -9"):
        list(islice(batches, 1000))
    assert worker not in workers_of(os.getpid())


def test_closing_the_stream_ends_its_workers(tmp_path: Path) -> None:
    before = set(workers_of(os.getpid()))
    batches = iter(stream(config(tmp_path), workers=3))
    next(batches)
    workers = set(workers_of(os.getpid())) - before
    assert len(workers) == 3
    for pid in workers:
        for number in (signal.SIGTERM, signal.SIGHUP):
            os.kill(pid, number)  # they leave it to this process when to end
    assert len(list(islice(batches, 40))) == 40
    batches.close()
    assert not set(workers_of(os.getpid())) & workers


_PARENT = """
import sys, time
from pathlib import Path
from onmt_entmax.data import prefetch
from tests.data.test_prefetch import config, stream
if __name__ == "__main__":
    prefetch.START_METHOD = sys.argv[2]
    batches = iter(stream(config(Path(sys.argv[1])), workers=2))
    next(batches)
    print("ready", flush=True)
    if sys.argv[3] == "end":
        sys.exit()
    time.sleep(60)
"""


@pytest.mark.parametrize(("how", "start"), [("kill", "spawn"), ("term", "fork"), ("end", "fork")])
def test_no_worker_outlives_its_parent(tmp_path: Path, start: str, how: str) -> None:
    """Where the parent ends by itself, it waits for its workers: it would not end without them."""
    (tmp_path / "parent.py").write_text(_PARENT)
    command = [sys.executable, tmp_path / "parent.py", tmp_path, start, how]
    workers: list[int] = []
    with started(command, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        if how != "end":
            workers = workers_of(process.pid)
            assert len(workers) >= 2
            process.send_signal(signal.SIGKILL if how == "kill" else signal.SIGTERM)
        process.wait(30)
    deadline = time.monotonic() + 20
    while any(Path(f"/proc/{pid}").exists() for pid in workers):
        assert time.monotonic() < deadline, "a worker lives on"
        time.sleep(0.05)


def test_a_system_without_threads_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = threading.Thread.start

    def start(thread: threading.Thread) -> None:
        if getattr(thread._target, "__module__", "") == prefetch.__name__:
            raise RuntimeError("can't start new thread")
        begin(thread)

    monkeypatch.setattr(prefetch, "START_METHOD", "fork")
    monkeypatch.setattr(threading.Thread, "start", start)
    with pytest.raises(UserError, match=r"^no thread can be started; .* num_workers: 0$"):
        first_batches(stream(config(tmp_path), workers=1), 1)
