"""Lists of checksums of a folder: a file that differs from the list is named, and is not read."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from onmt_entmax.files import FileError, write_files
from onmt_entmax.files.checksums import differences, read_checked, write_list


@pytest.fixture
def listed(tmp_path: Path) -> Path:
    """A folder with the files `a` and `b/a`, and a list of their checksums."""
    write_files({tmp_path / "a": "a", tmp_path / "b" / "a": "b"})
    write_list(tmp_path)
    return tmp_path


def test_sha256sum_accepts_a_list(listed: Path) -> None:
    check = ["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"]
    assert subprocess.run(check, cwd=listed).returncode == 0


def test_a_folder_that_was_not_changed_has_no_differences(listed: Path) -> None:
    assert differences(listed) == []


def test_a_file_that_was_not_changed_is_read(listed: Path) -> None:
    assert read_checked(listed, "b/a", 1) == b"b"


# --- changes of a listed folder --------------------------------------------------------------


def write_other_content(path: Path) -> None:
    path.write_text("other")


def replace_by_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        pytest.param("a", write_other_content, "its content is not what was written", id="changed"),
        pytest.param(
            "b/a", write_other_content, "its content is not what was written", id="changed below"
        ),
        pytest.param("a", Path.unlink, "is missing", id="missing"),
        pytest.param("b/a", Path.unlink, "is missing", id="missing below"),
        pytest.param("c", Path.touch, "was not there when the folder was written", id="new"),
    ],
)
def test_a_file_that_differs_from_the_list_is_named(
    listed: Path, name: str, change: Callable[[Path], object], message: str
) -> None:
    change(listed / name)
    (line,) = differences(listed)
    assert line.startswith(f"{listed / name}: {message}")


def test_a_pipe_in_a_listed_folder_is_an_error(listed: Path) -> None:
    """Reading it would never end."""
    replace_by_pipe(listed / "b" / "a")
    with pytest.raises(FileError, match=f"{listed}/b/a: is not a regular file"):
        differences(listed)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        pytest.param(
            "b/a", write_other_content, "its content is not what was written", id="changed"
        ),
        pytest.param("b/a", Path.unlink, "cannot be read .No such file", id="missing"),
        pytest.param("c", Path.touch, "its content is not what was written", id="new"),
        pytest.param("b/a", replace_by_pipe, "is not a regular file", id="a pipe"),
    ],
)
def test_a_file_that_differs_from_the_list_is_not_read(
    listed: Path, name: str, change: Callable[[Path], object], message: str
) -> None:
    change(listed / name)
    with pytest.raises(FileError, match=f"^{listed / name}: {message}"):
        read_checked(listed, name, 100)


# --- a folder without a list -----------------------------------------------------------------


@pytest.fixture
def unlisted(listed: Path) -> Path:
    (listed / "SHA256SUMS").unlink()
    return listed


def test_a_folder_without_a_list_cannot_be_compared(unlisted: Path) -> None:
    with pytest.raises(FileError, match="SHA256SUMS: cannot be read"):
        differences(unlisted)


def test_files_of_a_folder_without_a_list_are_read(unlisted: Path) -> None:
    """Older model folders have none."""
    assert read_checked(unlisted, "a", 1) == b"a"
