"""Writing of files: all or none, through links, into open files, and what cannot be written."""

import os
import stat
from pathlib import Path

import pytest

from onmt_entmax.files import (
    FileError,
    replaced_when_done,
    replaced_with_optional,
    write_files,
    write_text,
)
from tests.files.folders import contents, make_unreadable_files

# --- several files at once -------------------------------------------------------------------


@pytest.fixture
def new(tmp_path: Path) -> Path:
    """A file that does not exist, in a folder that does not exist."""
    return tmp_path / "new" / "a"


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A file that its owner may write and its group may read."""
    path = tmp_path / "b"
    path.write_text("before")
    path.chmod(0o640)
    return path


def test_after_an_error_no_file_is_changed(new: Path, old: Path) -> None:
    def stop_halfway() -> None:
        with replaced_when_done([new, old]) as (_, file):
            file.write("half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        stop_halfway()
    assert old.read_text() == "before"
    assert not new.exists()


def test_after_an_error_no_temporary_file_is_left(new: Path, old: Path, tmp_path: Path) -> None:
    def stop_halfway() -> None:
        with replaced_when_done([new, old]):
            assert len(contents(tmp_path)) == 4  # a folder, the old file, two temporary files
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        stop_halfway()
    assert contents(tmp_path) == {"b", "new"}


def test_all_files_are_replaced_at_the_end(new: Path, old: Path, tmp_path: Path) -> None:
    write_files({new: "whole", old: "whole"})
    assert (new.read_text(), old.read_text()) == ("whole", "whole")
    assert contents(tmp_path) == {"b", "new", "new/a"}


def test_a_replaced_file_keeps_its_permissions(old: Path) -> None:
    write_text(old, "whole")
    assert stat.S_IMODE(old.stat().st_mode) == 0o640


def test_a_new_file_has_the_permissions_of_the_umask(new: Path) -> None:
    """A temporary file of `tempfile` would be its owner's alone."""
    umask = os.umask(0)
    os.umask(umask)
    write_text(new, "whole")
    assert stat.S_IMODE(new.stat().st_mode) == 0o666 & ~umask


def test_an_optional_file_without_a_path_is_none(new: Path, old: Path) -> None:
    with replaced_with_optional([new], [None, old]) as (required, optional):
        assert len(required) == 1
        assert optional[0] is None


def test_required_and_optional_files_are_written(new: Path, old: Path) -> None:
    with replaced_with_optional([new], [None, old]) as ((first,), (_, last)):
        assert last is not None
        first.write("first")
        last.write("last")
    assert (new.read_text(), old.read_text()) == ("first", "last")


# --- links, open files, and what cannot be written -------------------------------------------


def test_an_open_file_is_written_where_it_stands(tmp_path: Path) -> None:
    """In a shell, `-output /dev/stdout >> all` keeps all that stands before and after it."""
    with open(tmp_path / "all", "w") as file:
        print("before", file=file, flush=True)
        write_text(Path(f"/dev/fd/{file.fileno()}"), "text\n")
        print("after", file=file)
    assert (tmp_path / "all").read_text() == "before\ntext\nafter\n"


def test_a_link_stays_and_the_file_behind_it_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "file").write_text("old")
    (tmp_path / "link").symlink_to("there/file")
    write_text(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "there" / "file").read_text() == "new"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        pytest.param("folder", "folder: is a folder already", id="a folder"),
        pytest.param("loop/x", "loop is a file, not a folder", id="below a loop of links"),
        pytest.param("large/x", "large is a file, not a folder", id="below a file"),
        pytest.param("a\0b", "a\\x00b': a null byte", id="a null byte"),
        pytest.param(
            "x" * 300, f"{'x' * 300}: cannot be written (File name too long)", id="a long name"
        ),
    ],
)
def test_a_file_that_cannot_be_written_is_named_in_one_line(
    tmp_path: Path, name: str, reason: str
) -> None:
    make_unreadable_files(tmp_path)
    with pytest.raises(FileError, match=r"^[^\n]+$") as raised:
        write_text(tmp_path / name, "text")
    assert reason in str(raised.value)
