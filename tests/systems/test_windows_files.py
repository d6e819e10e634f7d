"""Files on Windows, which differs in flushing, line ends, names of streams and open files."""

import _pyio
import errno
import os
from pathlib import Path, PureWindowsPath

import pytest

from onmt_entmax import files
from onmt_entmax.files import writing

# --- flushing --------------------------------------------------------------------------------


@pytest.fixture
def no_flushing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no folder be opened, and no file be flushed unless it is open for writing."""
    open_on_linux = os.open

    def open_but_no_folder(path: Path, flags: int, *more: int) -> int:
        if os.path.isdir(path):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return open_on_linux(path, flags, *more)

    monkeypatch.setattr(os, "open", open_but_no_folder)
    # Writing nothing fails if a file is not open for writing.
    monkeypatch.setattr(os, "fsync", lambda handle: os.write(handle, b""))


@pytest.mark.usefixtures("no_flushing")
def test_a_folder_is_written_although_it_cannot_be_flushed(tmp_path: Path) -> None:
    def fill(folder: Path) -> None:
        folder.mkdir()
        (folder / "a").write_text("b", encoding="utf-8")

    files.write_folder(tmp_path / "folder", fill)
    assert (tmp_path / "folder/a").read_text(encoding="utf-8") == "b"


@pytest.mark.usefixtures("no_flushing")
def test_a_file_is_written_although_its_folder_cannot_be_flushed(tmp_path: Path) -> None:
    files.write_text(tmp_path / "text", "line")
    assert (tmp_path / "text").read_text(encoding="utf-8") == "line"


# --- line ends, streams and locks ------------------------------------------------------------


def test_outputs_have_line_feeds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "linesep", "\r\n")
    # Python's own `open` reads it, the one in C does not.
    monkeypatch.setattr(writing, "open", _pyio.open, raising=False)
    with files.replaced_when_done([tmp_path / "output"]) as (output,):
        output.write("a\nb\n")
    assert (tmp_path / "output").read_bytes() == b"a\nb\n"


def test_a_path_with_backslashes_may_name_the_standard_output() -> None:
    path = PureWindowsPath("/dev/stdout")
    assert str(path) == r"\dev\stdout"
    assert files.is_stream(path)  # type: ignore[arg-type]


def test_an_error_is_kept_if_the_lock_of_its_folder_cannot_be_removed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It cannot be removed while another process has the lock's file open."""

    def unlink(path: Path, missing_ok: bool = False) -> None:
        raise PermissionError(errno.EACCES, "used by another process", str(path))

    monkeypatch.setattr(Path, "unlink", unlink)
    with pytest.raises(ZeroDivisionError), files.locked(tmp_path / "run"):
        raise ZeroDivisionError
