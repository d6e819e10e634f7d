"""Prefetching processes end with their stream and with their parent, and not by signals."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from onmt_entmax.config import DataConfig
from onmt_entmax.data.batch import Batch
from onmt_entmax.data.prefetch import PrefetchProcess
from onmt_entmax.errors import UserError
from tests.child_processes import children_of, is_alive
from tests.commands import ENVIRONMENT, started
from tests.data.corpora import stream, transformed_corpora

# --- one process ---


def three_numbers() -> Iterator[int]:
    return iter(range(3))


def one_number_and_a_bug() -> Iterator[int]:
    yield 0
    raise ZeroDivisionError


def test_a_process_ends_with_its_iterator() -> None:
    with closing(PrefetchProcess(three_numbers, depth=2)) as process:
        assert [*process] == [*three_numbers()]
        assert [*process] == []


def test_a_bug_of_the_iterator_is_not_its_end(capfd: pytest.CaptureFixture[str]) -> None:
    with closing(PrefetchProcess(one_number_and_a_bug, depth=2)) as process:
        assert next(process) == 0
        with pytest.raises(UserError, match="exit code 1"):
            next(process)
    assert "ZeroDivisionError" in capfd.readouterr().err


# --- workers of this process ---


class Prefetched(NamedTuple):
    """A stream after its first batch."""

    batches: Generator[Batch, None, None]
    workers: set[int]
    """The processes that prefetch it."""


def prefetch(config: DataConfig, workers: int) -> Prefetched:
    """Start to prefetch with so many workers, and take the first batch."""
    before = children_of(os.getpid())
    batches = iter(stream(config, workers=workers))
    next(batches)
    return Prefetched(batches, {*children_of(os.getpid())} - {*before})


def test_a_killed_worker_is_an_error_with_its_exit_code(tmp_path: Path) -> None:
    batches, (worker,) = prefetch(transformed_corpora(tmp_path, queue_size=1), workers=1)
    os.kill(worker, signal.SIGKILL)
    with pytest.raises(UserError, match="exit code -9"):
        list(islice(batches, 1000))
    assert not is_alive(worker)


def test_workers_ignore_signals_to_end(tmp_path: Path) -> None:
    """Their parent gets the same signals, and ends them when it ends."""
    batches, workers = prefetch(transformed_corpora(tmp_path), workers=3)
    assert len(workers) == 3
    for worker in workers:
        os.kill(worker, signal.SIGTERM)
        os.kill(worker, signal.SIGHUP)
    assert len(list(islice(batches, 40))) == 40
    batches.close()


def test_closing_the_stream_ends_its_workers(tmp_path: Path) -> None:
    batches, workers = prefetch(transformed_corpora(tmp_path), workers=3)
    assert [is_alive(worker) for worker in workers] == [True, True, True]
    batches.close()
    assert not any(map(is_alive, workers))


# --- workers of another process ---


@contextmanager
def prefetching(folder: Path, start_method: str, then: str) -> Iterator[subprocess.Popen[Any]]:
    """Start `tests.data.prefetching`, and wait until it has taken a batch."""
    module = [sys.executable, "-m", "tests.data.prefetching"]
    command = [*module, folder, start_method, then]
    with started(command, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        yield process


@pytest.mark.parametrize(
    ("number", "start_method"), [(signal.SIGKILL, "spawn"), (signal.SIGTERM, "fork")]
)
def test_no_worker_outlives_its_parent(
    tmp_path: Path, number: signal.Signals, start_method: str
) -> None:
    with prefetching(tmp_path, start_method, "wait") as parent:
        workers = children_of(parent.pid)
        assert len(workers) >= 2
        parent.send_signal(number)
        parent.wait(30)
    deadline = time.monotonic() + 20
    while any(map(is_alive, workers)):
        assert time.monotonic() < deadline, "a worker lives on"
        time.sleep(0.05)


def test_a_parent_that_ends_by_itself_ends_its_workers(tmp_path: Path) -> None:
    """The parent waits for its workers, so it would hang if they did not end."""
    with prefetching(tmp_path, "fork", "end") as parent:
        assert parent.wait(30) == 0
