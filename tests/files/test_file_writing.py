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
from tests.files.folders import make_unreadable_files, names


class TestSeveralFiles:
    @pytest.fixture
    def paths(self, tmp_path: Path) -> list[Path]:
        """A file in a new folder, and one that is there, for its owner and group."""
        old = tmp_path / "b"
        old.write_text("before")
        old.chmod(0o640)
        return [tmp_path / "new" / "a", old]

    def test_stay_as_they_were_after_an_error(self, paths: list[Path], tmp_path: Path) -> None:
        def stop_halfway() -> None:
            with replaced_when_done(paths) as files:
                files[1].write("half")
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            stop_halfway()
        assert paths[1].read_text() == "before"
        assert names(tmp_path) <= {"b", "new"}

    def test_take_their_names_together(self, paths: list[Path], tmp_path: Path) -> None:
        write_files(dict.fromkeys(paths, "whole"))
        assert [path.read_text() for path in paths] == ["whole", "whole"]
        assert names(tmp_path) == {"b", "new", "new/a"}

    def test_keep_their_permissions_and_new_ones_have_the_usual(self, paths: list[Path]) -> None:
        write_files(dict.fromkeys(paths, "whole"))
        umask = os.umask(0)
        os.umask(umask)
        new, old = (stat.S_IMODE(path.stat().st_mode) for path in paths)
        assert (new, old) == (0o666 & ~umask, 0o640)

    def test_may_be_optional(self, paths: list[Path], tmp_path: Path) -> None:
        """Without a path, there is no file."""
        required, optional = paths
        with replaced_with_optional([required], [None, optional]) as ((first,), (none, last)):
            assert none is None
            assert last is not None
            first.write("first")
            last.write("last")
        assert [path.read_text() for path in paths] == ["first", "last"]


# --- links, open files, and what cannot be written -------------------------------------------


def test_an_open_file_is_written_where_it_stands(tmp_path: Path) -> None:
    """In a shell, `-output /dev/stdout >> all` keeps all that stands before and after it."""
    with open(tmp_path / "all", "w") as file:
        print("before", file=file, flush=True)
        write_text(Path(f"/dev/fd/{file.fileno()}"), "text\n")
        print("after", file=file)
    assert (tmp_path / "all").read_text() == "before\ntext\nafter\n"


def test_a_link_stays_and_what_it_leads_to_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "file").write_text("old")
    (tmp_path / "link").symlink_to("there/file")
    write_text(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "there" / "file").read_text() == "new"


@pytest.mark.parametrize("name", ["folder", "loop/x", "large/x", "a\0b", "x" * 300], ids=repr)
def test_a_file_that_cannot_be_written_is_one_line_that_names_it(tmp_path: Path, name: str) -> None:
    make_unreadable_files(tmp_path)
    with pytest.raises(FileError, match=r"^[^\n]+$") as raised:
        write_text(tmp_path / name, "text")
    assert repr(name)[1:-1] in str(raised.value)
