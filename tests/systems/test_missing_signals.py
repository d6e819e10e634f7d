"""Windows has no SIGHUP, and no thread blocks signals there: workers, trainings and files cope."""

import os
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from onmt_entmax.data.prefetch import PrefetchProcess
from onmt_entmax.files import replaced_when_done
from onmt_entmax.train.signals import collected_signals


@pytest.fixture(autouse=True)
def windows_signals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide what the module `signal` lacks on Windows."""
    monkeypatch.delattr(signal, "SIGHUP", raising=False)
    monkeypatch.delattr(signal, "pthread_sigmask", raising=False)


def five_numbers() -> Iterator[int]:
    return iter(range(5))


def test_a_data_worker_delivers_its_items() -> None:
    with closing(PrefetchProcess(five_numbers, depth=2)) as process:
        assert [*process] == [*five_numbers()]


def test_a_training_collects_signals() -> None:
    with collected_signals(alone=True) as received:
        signal.raise_signal(signal.SIGTERM)
    assert received == [signal.SIGTERM]


def end_while_writing(path: Path) -> None:
    """Receive SIGTERM while a file is written."""
    with replaced_when_done([path]) as (file,):
        file.write("half")
        signal.raise_signal(signal.SIGTERM)


def test_a_signal_gives_its_status_to_a_command_that_writes(tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as raised:
        end_while_writing(tmp_path / "output")
    assert raised.value.code == 128 + signal.SIGTERM


def test_a_signal_leaves_no_half_written_file(tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        end_while_writing(tmp_path / "output")
    assert os.listdir(tmp_path) == []
