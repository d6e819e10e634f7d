"""Files that are written in parts, by one process at a time."""

import fcntl
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock

from onmt_entmax.files import FileError
from onmt_entmax.files.continued import Continued

WORK = {"table": "words.tsv"}


def lock_file(parts: Continued) -> Path:
    return parts.partial.with_name(f"{parts.partial.name}.lock")


def write_part(parts: Continued, text: str, rows: int) -> None:
    """Write a part, and end as if the process was killed after it."""
    with parts.opened():
        parts.write(text, {"rows": rows})


def test_a_finished_file_has_all_its_parts(tmp_path: Path) -> None:
    parts = Continued(tmp_path / "out", WORK)
    with parts.opened():
        parts.write("a\n", {"rows": 1})
        parts.write("b\n", {"rows": 2})
        parts.finish()
    assert (tmp_path / "out").read_bytes() == b"a\nb\n"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_after_a_kill_the_file_goes_on_behind_the_last_part(tmp_path: Path) -> None:
    write_part(Continued(tmp_path / "out", WORK), "a\n", 1)
    assert not (tmp_path / "out").exists()
    parts = Continued(tmp_path / "out", WORK)
    with parts.opened():
        assert parts.progress == {"rows": 1}
        parts.write("b\n", {"rows": 2})
        parts.finish()
    assert (tmp_path / "out").read_bytes() == b"a\nb\n"


def test_parts_of_other_work_are_dropped(tmp_path: Path) -> None:
    write_part(Continued(tmp_path / "out", WORK), "a\n", 1)
    parts = Continued(tmp_path / "out", {"table": "others.tsv"})
    with parts.opened():
        assert parts.dropped
        assert parts.progress == {}


# --- several processes ---


def test_what_another_process_finished_meanwhile_is_begun_anew(tmp_path: Path) -> None:
    """The first finishes when the second exists, and has not opened the parts yet."""
    path = tmp_path / "out"
    first = Continued(path, WORK)
    write_part(first, "a\n", 1)
    second = Continued(path, WORK)
    with first.opened():
        first.finish()
    with second.opened():
        assert second.progress == {}
        second.write("b\n", {"rows": 1})
        second.finish()
    assert path.read_bytes() == b"b\n"


def test_what_another_process_wrote_meanwhile_is_continued(tmp_path: Path) -> None:
    path = tmp_path / "out"
    first, second = Continued(path, WORK), Continued(path, WORK)
    write_part(first, "a\n", 1)
    with second.opened():
        assert second.progress == {"rows": 1}
        second.write("b\n", {"rows": 2})
        second.finish()
    assert path.read_bytes() == b"a\nb\n"


def test_two_processes_do_not_write_one_file(tmp_path: Path) -> None:
    parts = Continued(tmp_path / "out", {})
    lock = FileLock(lock_file(parts))
    message = f"^{tmp_path / 'out'}: another process writes here"
    with lock, pytest.raises(FileError, match=message), parts.opened():
        pass


def test_a_folder_that_cannot_be_written_is_named_by_the_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    parts = Continued(tmp_path / "file" / "out", {})
    with pytest.raises(FileError, match=f"^{tmp_path}/file/out: cannot be written"), parts.opened():
        pass


def test_the_lock_of_a_deleted_file_is_not_a_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the opening of the lock file and its locking, the process before ends."""
    parts = Continued(tmp_path / "out", WORK)
    flock: Callable[[int, int], None] = fcntl.flock

    def flock_after_the_deletion(descriptor: int, operation: int) -> None:
        lock_file(parts).unlink(missing_ok=True)
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", flock_after_the_deletion)
    with pytest.raises(FileError, match="another process writes here"), parts.opened():
        pass


def test_a_refused_file_leaves_no_lock_file(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with (
        pytest.raises(FileError, match="is a folder already"),
        Continued(tmp_path / "out", WORK).opened(),
    ):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
