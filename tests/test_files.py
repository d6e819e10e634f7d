"""Reading lines, atomic writing, locks and lists of checksums."""

import math
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from onmt_entmax.files import (
    FileError,
    count_lines,
    json_line,
    json_text,
    locked,
    read_aligned,
    read_bytes,
    read_lines,
    read_object,
    refuse_overwriting,
    replaced_when_done,
    temporary_folder,
    write_files,
    write_folder,
    write_text,
)
from onmt_entmax.files.checksums import differences, read_checked, write_list
from onmt_entmax.files.parsing import parse_json
from tests.commands import ENVIRONMENT


def names(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}


def test_lines_end_at_line_feeds_only(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes("\ufeffa b\rc\r\nd\u2028e\x0bf\n\n\ufeffg".encode())
    assert list(read_lines(path)) == ["a b\rc", "d\u2028e\x0bf", "", "\ufeffg"]
    assert count_lines(path) == 4
    (tmp_path / "b").write_text("1\n2\n3")
    with pytest.raises(FileError, match=r"b: 3 lines, but .*text has 4"):
        read_aligned(path, tmp_path / "b")
    (tmp_path / "b").write_text("1\n2\n3\n4")
    assert read_aligned(path, tmp_path / "b")[1] == ["1", "2", "3", "4"]


def kinds(folder: Path) -> list[Path]:
    """Return paths of which none can be read as a regular file of ten bytes, for any user."""
    for name, content in (("large", b"x" * 11), ("bytes", b"a\n\xff")):
        (folder / name).write_bytes(content)
    os.mkfifo(folder / "pipe")
    (folder / "folder").mkdir()
    (folder / "loop").symlink_to("loop")
    (folder / "device").symlink_to("/dev/zero")
    return [folder / name for name in ("none", "large", "pipe", "folder", "loop", "device", "a\0b")]


def test_what_cannot_be_read_is_one_line_that_names_it(tmp_path: Path) -> None:
    for path in kinds(tmp_path):
        with pytest.raises(FileError) as raised:
            read_bytes(path, 10)
        assert str(raised.value).startswith((str(path), repr(str(path)))), path
        assert "\n" not in str(raised.value)
    (tmp_path / "link").symlink_to("large")
    assert read_bytes(tmp_path / "link", 11) == b"x" * 11
    with pytest.raises(FileError, match=r"bytes:2: not UTF-8 text"):
        list(read_lines(tmp_path / "bytes"))
    with pytest.raises(FileError, match=r"bytes: damaged"):
        read_object(tmp_path / "bytes")
    (tmp_path / "bytes").write_text('{"a": [1]}')
    assert read_object(tmp_path / "bytes") == {"a": [1]}


def test_several_files_take_their_names_together_or_not_at_all(tmp_path: Path) -> None:
    paths = [tmp_path / "new" / "a", tmp_path / "b"]
    paths[1].write_text("before")
    paths[1].chmod(0o640)

    def stop_halfway() -> None:
        with replaced_when_done(paths) as files:
            files[1].write("half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        stop_halfway()
    assert paths[1].read_text() == "before"
    assert names(tmp_path) <= {"b", "new"}
    write_files(dict.fromkeys(paths, "whole"))
    assert [path.read_text() for path in paths] == ["whole", "whole"]
    assert names(tmp_path) == {"b", "new", "new/a"}
    umask = os.umask(0)
    os.umask(umask)
    modes = [stat.S_IMODE(path.stat().st_mode) for path in paths]
    assert modes == [0o666 & ~umask, 0o640]  # a new file's, and the old one's


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_process_that_is_ended_leaves_the_old(tmp_path: Path, number: int, what: str) -> None:
    (tmp_path / "file").write_text("before")
    (tmp_path / "folder").mkdir()
    code = """
import sys, time
from pathlib import Path
from onmt_entmax.files import replaced_when_done, write_folder
def wait(where):
    print("ready", flush=True)
    time.sleep(60)
if sys.argv[1] == "file":
    with replaced_when_done([Path("file")]) as (file,):
        file.write("half")
        wait(file)
write_folder(Path("folder"), lambda place: (place.mkdir(), wait(place)))
"""
    command = [sys.executable, "-c", code, what]
    with subprocess.Popen(
        command, stdout=-1, stderr=subprocess.DEVNULL, cwd=tmp_path, env=ENVIRONMENT
    ) as process:
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(number)
        status = process.wait(30)
    caught = number in (signal.SIGTERM, signal.SIGHUP)
    assert status == (128 + number if caught else -number)
    assert (tmp_path / "file").read_text() == "before"
    left = names(tmp_path) - {"file", "folder"}
    assert len(left) == (number == signal.SIGKILL)
    assert all(name.startswith(f".{what}.") and name.endswith(".tmp") for name in left)


def test_an_open_file_is_written_where_it_stands(tmp_path: Path) -> None:
    """As of a shell's `-output /dev/stdout >> all`: nothing before or after it is lost."""
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


def test_what_cannot_be_written_is_one_line_that_names_it(tmp_path: Path, monkeypatch) -> None:
    kinds(tmp_path)
    for name in ("folder", "loop/x", "large/x", "a\0b", "x" * 300):
        with pytest.raises(FileError, match=r"^[^\n]+$") as raised:
            write_text(tmp_path / name, "text")
        assert repr(name)[1:-1] in str(raised.value)
    (tmp_path / "to").symlink_to("large")
    for folder in ("large", "to"):
        with pytest.raises(FileError, match=f"since {tmp_path / folder} is a file, not a folder"):
            write_text(tmp_path / folder / "below" / "x", "text")
    with pytest.raises(FileError, match="large: is a file"):
        write_folder(tmp_path / "large", Path.mkdir)
    (tmp_path / "second").symlink_to("large")
    with pytest.raises(FileError, match="is to be written twice"):
        write_files({tmp_path / "large": "", tmp_path / "second": ""})
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write everything
    with pytest.raises(FileError, match=r"large: cannot be written .Permission denied"):
        write_text(tmp_path / "large", "text")
    assert (tmp_path / "large").read_text() == "x" * 11


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_folder_that_cannot_take_its_place_leaves_the_old(
    tmp_path: Path, monkeypatch, error: BaseException
) -> None:
    def write(text: str) -> None:
        def fill(path: Path) -> None:
            path.mkdir()
            (path / "weights").write_text(text)

        write_folder(tmp_path / "step_1", fill)

    write("old")
    write("newer")
    replace = os.replace

    def full(source: Path, target: Path) -> None:
        if str(source).endswith(".tmp"):
            raise error
        replace(source, target)

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises((FileError, KeyboardInterrupt), match=r"No space left|^$"):
        write("newest")
    assert (tmp_path / "step_1" / "weights").read_text() == "newer"
    assert names(tmp_path) == {"step_1", "step_1/weights"}


def test_inputs_are_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    (tmp_path / "link").symlink_to("a")
    refuse_overwriting([tmp_path / "a", None, Path("/dev/stdin")], [tmp_path / "b", None])
    with pytest.raises(FileError, match="link: is read, and would be overwritten"):
        refuse_overwriting([tmp_path / "a"], [tmp_path / "link"])
    (tmp_path / "hard").hardlink_to(tmp_path / "a")  # as a name in another case, on some disks
    with pytest.raises(FileError, match="hard: is read, and would be overwritten"):
        refuse_overwriting([tmp_path / "a"], [tmp_path / "hard"])
    with pytest.raises(FileError, match="-: the standard output is /dev/stdout"):
        refuse_overwriting([], [Path("-")])


def test_files_of_a_model_are_not_overwritten(tmp_path: Path) -> None:
    for name in ("model.safetensors", "vocab.json", "output"):
        (tmp_path / name).touch()
    refuse_overwriting([], [tmp_path / "output"])
    for name in ("model.safetensors", "vocab.json", "SHA256SUMS"):
        with pytest.raises(FileError, match=f"{name}: is a file of a model"):
            refuse_overwriting([], [tmp_path / name])


def test_a_lock_notices_that_its_folder_was_replaced(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with locked(run) as check:
        check()
        shutil.rmtree(run)
        with pytest.raises(FileError, match="run: was deleted or replaced"):
            check()
        with locked(run) as other:
            other()
            with pytest.raises(FileError, match="run: was deleted or replaced"):
                check()


def test_a_lock_does_not_tidy_up_in_another_folder(tmp_path: Path) -> None:
    def fail() -> None:
        with locked(tmp_path / "run"):
            shutil.rmtree(tmp_path / "run")
            write_files({tmp_path / "run" / ".lock": ""})
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert (tmp_path / "run" / ".lock").exists()


def test_a_second_signal_does_not_end_the_removal(tmp_path: Path, monkeypatch) -> None:
    rmtree = shutil.rmtree

    def signalled(*arguments: object, **keywords: object) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        rmtree(*arguments, **keywords)

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(shutil, "rmtree", signalled)
    with pytest.raises(SystemExit), temporary_folder():
        os.kill(os.getpid(), signal.SIGTERM)
    assert list(tmp_path.iterdir()) == []
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


_UNPACKING = """
import sys, time
from pathlib import Path
from onmt_entmax.files import temporary_folder
with temporary_folder() as folder:
    (folder / "file").write_text("x")
    print(folder, flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_temporary_folder_is_removed_when_a_signal_ends_the_process(number: int) -> None:
    command = [sys.executable, "-c", _UNPACKING]
    with subprocess.Popen(command, stdout=-1, stderr=-1, env=ENVIRONMENT, text=True) as process:
        folder = Path(process.stdout.readline().strip())
        assert (folder / "file").exists()
        process.send_signal(number)
        process.communicate(timeout=30)
    assert not folder.exists()


def test_one_process_works_in_a_folder(tmp_path: Path) -> None:
    run = tmp_path / "run"
    code = """
import sys, time
from pathlib import Path
from onmt_entmax.files import locked
with locked(Path(sys.argv[1])):
    print("ready", flush=True)
    time.sleep(60)
"""
    command = [sys.executable, "-c", code, run]
    with subprocess.Popen(command, stdout=-1, env=ENVIRONMENT) as process:
        assert process.stdout.readline() == b"ready\n"
        with pytest.raises(FileError, match="run: another process works here"), locked(run):
            pytest.fail("both work there")
        process.kill()
    with locked(run):
        (run / "file").touch()

    def fail(folder: Path) -> None:
        with locked(folder):
            raise ZeroDivisionError

    link, scratch = tmp_path / "link", tmp_path / "scratch"
    scratch.mkdir()
    link.symlink_to(scratch)
    for folder, left in ((run, True), (tmp_path / "new", False), (link, True)):
        with pytest.raises(ZeroDivisionError):
            fail(folder)
        assert folder.exists() == left


CHANGES: dict[str, Callable[[Path], object]] = {
    "a: its content is not what was written": lambda folder: (folder / "a").write_text("other"),
    "a: is missing": lambda folder: (folder / "a").unlink(),
    "c: was not there": lambda folder: (folder / "c").touch(),
    "b/a: is not a regular file": lambda folder: replaced_by_pipe(folder / "b" / "a"),
    "SHA256SUMS: cannot be read": lambda folder: (folder / "SHA256SUMS").unlink(),
}


def replaced_by_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize("wrong", CHANGES)
def test_changes_of_a_listed_folder_are_named(tmp_path: Path, wrong: str) -> None:
    write_files({tmp_path / "a": "a", tmp_path / "b" / "a": "b"})
    write_list(tmp_path)
    check = ["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"]
    assert subprocess.run(check, cwd=tmp_path).returncode == 0
    assert differences(tmp_path) == []
    assert read_checked(tmp_path, "b/a", 1) == b"b"
    CHANGES[wrong](tmp_path)
    try:
        (line,) = differences(tmp_path)
    except FileError as error:
        line = str(error)
    assert line.startswith(f"{tmp_path}/{wrong}")
    if (name := wrong.partition(":")[0]) == "SHA256SUMS":
        assert read_checked(tmp_path, "a", 1) == b"a"
    else:
        with pytest.raises(FileError, match=f"{tmp_path / name}: "):
            read_checked(tmp_path, name, 100)


def test_json_has_no_number_that_is_not_finite() -> None:
    content = {"a": [math.inf, (-math.inf, 1.5)], "b": {"c": math.nan}, "d": "ä", "e": None, "f": 1}
    expected = {"a": [None, [None, 1.5]], "b": {"c": None}, "d": "ä", "e": None, "f": 1}
    for text in (json_line(content), json_text(content)):
        assert parse_json(text) == expected
        assert text.endswith("}\n")
    assert json_line(content).count("\n") == 1
