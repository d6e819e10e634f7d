"""Other operating systems: everything works without what only Linux has."""

import _pyio
import errno
import multiprocessing
import os
import signal
import sys
from collections.abc import Iterator
from multiprocessing.context import ForkProcess
from pathlib import Path, PureWindowsPath

import pytest
import torch

from onmt_entmax import files, systems
from onmt_entmax.data.prefetch import PrefetchProcess
from onmt_entmax.errors import UserError
from onmt_entmax.exhaustion import check_free
from onmt_entmax.files import writing
from onmt_entmax.train.signals import collected_signals
from tools.papers.running import processors

# --- signals and processes ---------------------------------------------------------------------


@pytest.fixture
def windows_signals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(signal, "SIGHUP", raising=False)
    monkeypatch.delattr(signal, "pthread_sigmask", raising=False)


def five_numbers() -> Iterator[int]:
    return iter(range(5))


@pytest.mark.usefixtures("windows_signals")
def test_data_workers_need_no_unix_signals() -> None:
    process = PrefetchProcess(five_numbers, depth=2)
    assert [next(process) for _ in range(5)] == list(range(5))
    process.close()


@pytest.mark.usefixtures("windows_signals")
def test_trainings_need_no_unix_signals() -> None:
    with collected_signals(alone=True) as received:
        signal.raise_signal(signal.SIGTERM)
    assert received == [signal.SIGTERM]


@pytest.mark.usefixtures("windows_signals")
def test_files_need_no_unix_signals(tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as exit_, files.replaced_when_done([tmp_path / "output"]):
        signal.raise_signal(signal.SIGTERM)
    assert exit_.value.code == 128 + signal.SIGTERM
    assert not os.listdir(tmp_path)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere, workers start anew")
def test_data_workers_are_forks_whatever_the_default_of_python() -> None:
    """Since Python 3.14 it is `forkserver`, whose processes are not children of this one."""
    multiprocessing.set_start_method("forkserver", force=True)
    try:
        process = PrefetchProcess(five_numbers, depth=2)
    finally:
        multiprocessing.set_start_method(None, force=True)
    (child,) = multiprocessing.active_children()
    assert isinstance(child, ForkProcess)
    process.close()


@pytest.mark.parametrize("name", ["darwin", "win32"])
def test_data_workers_start_anew_elsewhere(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", name)
    assert systems.start_method() == "spawn"


# --- files -------------------------------------------------------------------------------------


@pytest.fixture
def no_flushing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows opens no folders, and flushes only files that are open for writing."""
    unchanged = os.open

    def open_file(path: Path, flags: int, *more: int) -> int:
        if os.path.isdir(path):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return unchanged(path, flags, *more)

    monkeypatch.setattr(os, "open", open_file)
    # Writing nothing fails where a file is not open for writing.
    monkeypatch.setattr(os, "fsync", lambda handle: os.write(handle, b""))


@pytest.mark.usefixtures("no_flushing")
def test_folders_are_written_where_they_cannot_be_flushed(tmp_path: Path) -> None:
    def fill(folder: Path) -> None:
        folder.mkdir()
        (folder / "a").write_text("b", encoding="utf-8")

    files.write_folder(tmp_path / "folder", fill)
    assert (tmp_path / "folder/a").read_text(encoding="utf-8") == "b"


@pytest.mark.usefixtures("no_flushing")
def test_files_are_written_where_folders_cannot_be_flushed(tmp_path: Path) -> None:
    files.write_text(tmp_path / "text", "line")
    assert (tmp_path / "text").read_text(encoding="utf-8") == "line"


def test_outputs_have_line_feeds_on_every_system(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(writing, "open", _pyio.open, raising=False)
    monkeypatch.setattr(os, "linesep", "\r\n")  # which this `open` reads
    with files.replaced_when_done([tmp_path / "output"]) as (output,):
        output.write("a\nb\n")
    assert (tmp_path / "output").read_bytes() == b"a\nb\n"


def test_the_standard_output_has_its_name_on_windows_too() -> None:
    assert files.is_stream(PureWindowsPath("/dev/stdout"))  # type: ignore[arg-type]


def test_the_error_of_a_block_is_kept_where_its_lock_cannot_be_removed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def unlink(path: Path, missing_ok: bool = False) -> None:
        raise PermissionError(errno.EACCES, "used by another process", str(path))

    monkeypatch.setattr(Path, "unlink", unlink)
    with pytest.raises(ZeroDivisionError), files.locked(tmp_path / "run"):
        raise ZeroDivisionError


# --- memory and processors ---------------------------------------------------------------------


@pytest.mark.skipif(not Path("/proc/meminfo").exists(), reason="only Linux tells its free memory")
def test_memory_is_checked_where_the_system_tells() -> None:
    with pytest.raises(MemoryError, match=r"needs 1,000,000,000\.0 GB, .* GB are free"):
        check_free(10**18, torch.device("cpu"))


def test_memory_is_not_checked_where_the_system_does_not_tell(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def read_text(path: Path, encoding: str) -> str:
        raise FileNotFoundError(errno.ENOENT, "No such file or directory", str(path))

    monkeypatch.setattr(Path, "read_text", read_text)
    check_free(10**18, torch.device("cpu"))


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="the system binds no process")
def test_processors_are_those_of_the_process() -> None:
    usable = os.sched_getaffinity(0)
    assert processors(str(min(usable)), jobs=1)[0] in usable


@pytest.fixture
def no_binding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only Linux binds a process to processors."""
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)


@pytest.mark.usefixtures("no_binding")
def test_processors_are_not_named_where_the_system_binds_none() -> None:
    with pytest.raises(UserError, match="--cores: this system binds no process"):
        processors("0", jobs=1)


@pytest.mark.usefixtures("no_binding")
def test_processors_need_no_names_where_the_system_binds_none() -> None:
    assert processors("", jobs=2) == [None, None]
