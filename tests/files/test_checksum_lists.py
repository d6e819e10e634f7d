"""Lists of checksums of a folder's files: what differs from one is named, and not read."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from onmt_entmax.files import FileError, write_files
from onmt_entmax.files.checksums import differences, read_checked, write_list


@pytest.fixture
def listed(tmp_path: Path) -> Path:
    """A folder of two files with a list of their checksums."""
    write_files({tmp_path / "a": "a", tmp_path / "b" / "a": "b"})
    write_list(tmp_path)
    return tmp_path


def test_a_list_is_one_of_sha256sum(listed: Path) -> None:
    check = ["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"]
    assert subprocess.run(check, cwd=listed).returncode == 0


def test_a_folder_that_was_not_changed_has_no_differences(listed: Path) -> None:
    assert differences(listed) == []


def test_a_file_that_was_not_changed_is_read(listed: Path) -> None:
    assert read_checked(listed, "b/a", 1) == b"b"


# --- changes ---------------------------------------------------------------------------------


def write_other_content(path: Path) -> None:
    path.write_text("other")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param(write_other_content, "its content is not what was writ", id="another content"),
        pytest.param(Path.unlink, "is missing", id="a file is missing"),
    ],
)
@pytest.mark.parametrize("name", ["a", "b/a"])
def test_a_changed_file_of_a_listed_folder_is_named_and_not_read(
    listed: Path, change: Callable[[Path], object], message: str, name: str
) -> None:
    change(listed / name)
    (line,) = differences(listed)
    assert line.startswith(f"{listed / name}: {message}")
    with pytest.raises(FileError, match=f"{listed / name}: "):
        read_checked(listed, name, 100)


def test_a_new_file_of_a_listed_folder_is_named_and_not_read(listed: Path) -> None:
    (listed / "c").touch()
    (line,) = differences(listed)
    assert line.startswith(f"{listed / 'c'}: was not there")
    with pytest.raises(FileError, match=f"{listed / 'c'}: "):
        read_checked(listed, "c", 100)


def test_a_pipe_in_a_listed_folder_is_named_and_not_read(listed: Path) -> None:
    """Reading it would never end."""
    path = listed / "b" / "a"
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(FileError, match=f"{path}: is not a regular file"):
        differences(listed)
    with pytest.raises(FileError, match=f"{path}: "):
        read_checked(listed, "b/a", 100)


class TestAMissingList:
    @pytest.fixture
    def unlisted(self, listed: Path) -> Path:
        (listed / "SHA256SUMS").unlink()
        return listed

    def test_cannot_be_compared(self, unlisted: Path) -> None:
        with pytest.raises(FileError, match="SHA256SUMS: cannot be read"):
            differences(unlisted)

    def test_lets_files_be_read(self, unlisted: Path) -> None:
        assert read_checked(unlisted, "a", 1) == b"a"
