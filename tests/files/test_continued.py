"""Files that are written in parts, by one process at a time."""

import fcntl
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock

from onmt_entmax.files import FileError
from onmt_entmax.files.continued import Continued

RESUME_KEY = {"table": "words.tsv"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The file that is written."""
    return tmp_path / "out"


def lock_file(parts: Continued) -> Path:
    """Return the path of the file that is locked while parts are written."""
    return parts.partial.with_name(f"{parts.partial.name}.lock")


def write_part(parts: Continued, text: str, rows: int) -> None:
    """Write a part, and leave the file unfinished, as a process does that is killed then."""
    with parts.opened():
        parts.write(text, {"rows": rows})


def write_rest(parts: Continued, text: str) -> None:
    """Write the last part, and give the file its name."""
    with parts.opened():
        parts.write(text, {"rows": 2})
        parts.finish()


# --- one process after another ---------------------------------------------------------------


def test_a_finished_file_has_all_its_parts(path: Path) -> None:
    parts = Continued(path, RESUME_KEY)
    with parts.opened():
        parts.write("a\n", {"rows": 1})
        parts.write("b\n", {"rows": 2})
        parts.finish()
    assert path.read_bytes() == b"a\nb\n"


def test_a_finished_file_leaves_nothing_beside_it(path: Path) -> None:
    write_rest(Continued(path, RESUME_KEY), "a\n")
    assert [*path.parent.iterdir()] == [path]


def test_a_file_has_no_name_before_it_is_finished(path: Path) -> None:
    write_part(Continued(path, RESUME_KEY), "a\n", 1)
    assert not path.exists()


def test_the_next_process_gets_the_progress_of_the_last_part(path: Path) -> None:
    write_part(Continued(path, RESUME_KEY), "a\n", 1)
    parts = Continued(path, RESUME_KEY)
    with parts.opened():
        assert parts.progress == {"rows": 1}


def test_the_next_process_continues_after_the_last_part(path: Path) -> None:
    write_part(Continued(path, RESUME_KEY), "a\n", 1)
    write_rest(Continued(path, RESUME_KEY), "b\n")
    assert path.read_bytes() == b"a\nb\n"


def test_text_after_the_last_record_is_cut_off(path: Path) -> None:
    """A process may be killed between the two."""
    parts = Continued(path, RESUME_KEY)
    write_part(parts, "a\n", 1)
    with open(parts.partial, "a") as file:
        file.write("half")
    write_rest(Continued(path, RESUME_KEY), "b\n")
    assert path.read_bytes() == b"a\nb\n"


def test_parts_with_another_resume_key_are_dropped(path: Path) -> None:
    write_part(Continued(path, RESUME_KEY), "a\n", 1)
    parts = Continued(path, {"table": "others.tsv"})
    with parts.opened():
        assert parts.dropped
        assert parts.progress == {}


# --- several processes at once ---------------------------------------------------------------


def test_a_file_that_another_process_finished_meanwhile_is_begun_anew(path: Path) -> None:
    """The second process was there before, and had not opened the parts yet."""
    first = Continued(path, RESUME_KEY)
    write_part(first, "a\n", 1)
    second = Continued(path, RESUME_KEY)
    with first.opened():
        first.finish()
    write_rest(second, "b\n")
    assert path.read_bytes() == b"b\n"


def test_parts_that_another_process_wrote_meanwhile_are_continued(path: Path) -> None:
    first, second = Continued(path, RESUME_KEY), Continued(path, RESUME_KEY)
    write_part(first, "a\n", 1)
    write_rest(second, "b\n")
    assert path.read_bytes() == b"a\nb\n"


def test_a_file_that_another_process_writes_is_refused(path: Path) -> None:
    parts = Continued(path, RESUME_KEY)
    message = f"^{path}: another process writes here"
    with (
        FileLock(lock_file(parts)),
        pytest.raises(FileError, match=message),
        parts.opened(),
    ):
        pytest.fail("both write it")


def test_the_lock_of_a_deleted_file_is_not_a_lock(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process before ends, and deletes its lock file, after this one opened that file."""
    parts = Continued(path, RESUME_KEY)
    flock: Callable[[int, int], None] = fcntl.flock

    def flock_after_the_deletion(descriptor: int, operation: int) -> None:
        lock_file(parts).unlink(missing_ok=True)
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", flock_after_the_deletion)
    with pytest.raises(FileError, match="another process writes here"), parts.opened():
        pytest.fail("locked a deleted file")


# --- files that cannot be written ------------------------------------------------------------


def test_a_file_below_another_file_cannot_be_written(path: Path) -> None:
    path.touch()
    parts = Continued(path / "below", RESUME_KEY)
    with pytest.raises(FileError, match=f"^{path}/below: cannot be written"), parts.opened():
        pytest.fail("opened")


def test_a_refused_file_leaves_no_lock_file(path: Path) -> None:
    path.mkdir()
    parts = Continued(path, RESUME_KEY)
    with pytest.raises(FileError, match="is a folder already"), parts.opened():
        pytest.fail("opened")
    assert [*path.parent.iterdir()] == [path]
