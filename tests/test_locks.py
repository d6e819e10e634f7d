"""Locked folders: who gets in, what a refused start leaves, and where a renamed folder is found."""

import fcntl
import os
import shutil
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from onmt_entmax.files import FileError
from onmt_entmax.locks import FolderLock, LockedError, is_locked, locked


def test_who_is_refused_learns_which_process_is_in(tmp_path: Path) -> None:
    with locked(tmp_path) as lock:
        assert is_locked(tmp_path)
        with pytest.raises(LockedError, match=f"{tmp_path}: process {os.getpid()} on .* works"):
            locked(tmp_path).__enter__()
        lock.name(12)
        with pytest.raises(LockedError, match="process 12 on"):
            locked(tmp_path).__enter__()
        lock.file.truncate(0)
        with pytest.raises(LockedError, match="another process works here"):
            locked(tmp_path).__enter__()
    assert not is_locked(tmp_path)
    with locked(tmp_path):
        pass


def test_a_pipe_in_the_place_of_a_lock_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".lock")
    found: list[bool] = []
    thread = threading.Thread(target=lambda: found.append(is_locked(tmp_path)), daemon=True)
    thread.start()
    thread.join(20)
    assert found == [False]


def write_log_and_fail(folder: Path) -> None:
    (folder / "log").touch()
    raise FileExistsError


def test_a_block_that_fails_leaves_no_trace(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b" / "c"
    with pytest.raises(KeyboardInterrupt), locked(folder):
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []
    folder.mkdir(parents=True)
    (folder / "kept").touch()
    with pytest.raises(ZeroDivisionError), locked(folder):
        raise ZeroDivisionError
    assert [path.name for path in folder.iterdir()] == ["kept"]
    with pytest.raises(FileExistsError), locked(folder):
        write_log_and_fail(folder)
    assert {path.name for path in folder.iterdir()} == {"kept", "log", ".lock"}
    with pytest.raises(ZeroDivisionError), locked(folder):
        raise ZeroDivisionError
    assert {path.name for path in folder.iterdir()} == {"kept", "log", ".lock"}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_no_trace(tmp_path: Path, number: signal.Signals) -> None:
    with pytest.raises(SystemExit) as raised, locked(tmp_path / "run"):
        os.kill(os.getpid(), number)
    assert raised.value.code == 128 + number
    assert list(tmp_path.iterdir()) == []


def test_a_lock_file_that_its_holder_has_removed_is_no_lock(tmp_path: Path, monkeypatch) -> None:
    """The second process opens the file, the first removes it, a third one makes a new file."""
    flock, times = fcntl.flock, []

    def late(file: int, how: int) -> None:
        times.append(how)
        if len(times) == 1:
            (tmp_path / ".lock").unlink()
        flock(file, how)

    monkeypatch.setattr(fcntl, "flock", late)
    with locked(tmp_path) as lock:
        assert lock.place() == tmp_path
        with pytest.raises(LockedError):
            locked(tmp_path).__enter__()


def test_a_folder_that_is_removed_meanwhile_is_made_again(tmp_path: Path, monkeypatch) -> None:
    system, folder = os.open, tmp_path / "run"

    def late(path: Path, *arguments: int) -> int:
        monkeypatch.setattr(os, "open", system)
        folder.rmdir()
        return system(path, *arguments)

    monkeypatch.setattr(os, "open", late)
    with locked(folder) as lock:
        assert lock.place() == folder


def test_a_folder_that_cannot_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FileError, match="file: cannot be written"):
        locked(tmp_path / "file").__enter__()


def renamed(run: Path) -> Path:
    return run.rename(run.with_name("later"))


def moved_up(run: Path) -> Path:
    return run.parent.rename(run.parent.with_name("up")) / run.name


def replaced(run: Path) -> Path:
    place = renamed(run)
    run.mkdir()
    (run / ".lock").touch()
    return place


def deleted(run: Path) -> None:
    shutil.rmtree(run)


def deleted_and_made_again(run: Path) -> None:
    deleted(run)
    run.mkdir()
    (run / ".lock").touch()


def unlocked(run: Path) -> None:
    (run / ".lock").unlink()


@pytest.mark.parametrize(
    "change", [renamed, moved_up, replaced, deleted, deleted_and_made_again, unlocked]
)
def test_a_folder_is_found_where_it_is(
    tmp_path: Path, change: Callable[[Path], Path | None]
) -> None:
    run, before = tmp_path / "runs" / "one", []

    def fail(lock: FolderLock) -> NoReturn:
        assert lock.place() == run
        place = change(run)
        assert lock.place() == place
        before.extend(sorted(tmp_path.rglob("*")))
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), locked(run) as lock:
        fail(lock)
    assert sorted(tmp_path.rglob("*")) == before  # what is there now is not of this lock
