"""Reading lines, atomic writing, locks and lists of checksums."""

import math
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
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
    """Return the paths of all that a folder holds."""
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}


# --- reading ---------------------------------------------------------------------------------


class TestLines:
    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        """A file of four lines with other marks of lines in them, and two byte order marks."""
        path = tmp_path / "text"
        path.write_bytes("\ufeffa b\rc\r\nd\u2028e\x0bf\n\n\ufeffg".encode())
        return path

    def test_end_at_line_feeds_only(self, path: Path) -> None:
        """The byte order mark at the beginning is no text."""
        assert list(read_lines(path)) == ["a b\rc", "d\u2028e\x0bf", "", "\ufeffg"]

    def test_are_counted_as_they_are_read(self, path: Path) -> None:
        assert count_lines(path) == 4

    def test_of_two_files_are_read_together(self, path: Path, tmp_path: Path) -> None:
        (tmp_path / "b").write_text("1\n2\n3\n4")
        assert read_aligned(path, tmp_path / "b")[1] == ["1", "2", "3", "4"]

    def test_of_two_files_are_as_many(self, path: Path, tmp_path: Path) -> None:
        (tmp_path / "b").write_text("1\n2\n3")
        with pytest.raises(FileError, match=r"b: 3 lines, but .*text has 4"):
            read_aligned(path, tmp_path / "b")

    def test_that_are_no_text_are_named(self, tmp_path: Path) -> None:
        (tmp_path / "bytes").write_bytes(b"a\n\xff")
        with pytest.raises(FileError, match=r"bytes:2: not UTF-8 text"):
            list(read_lines(tmp_path / "bytes"))


UNREADABLE = ("none", "large", "pipe", "folder", "loop", "device", "a\0b")


def make_unreadable_files(folder: Path) -> None:
    """Make files of which none can be read as a regular file of ten bytes, for any user."""
    (folder / "large").write_bytes(b"x" * 11)
    os.mkfifo(folder / "pipe")
    (folder / "folder").mkdir()
    (folder / "loop").symlink_to("loop")
    (folder / "device").symlink_to("/dev/zero")


@pytest.mark.parametrize("name", UNREADABLE, ids=repr)
def test_a_file_that_cannot_be_read_is_one_line_that_names_it(tmp_path: Path, name: str) -> None:
    make_unreadable_files(tmp_path)
    path = tmp_path / name
    with pytest.raises(FileError) as raised:
        read_bytes(path, 10)
    assert str(raised.value).startswith((str(path), repr(str(path))))
    assert "\n" not in str(raised.value)


def test_links_to_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    (tmp_path / "link").symlink_to("file")
    assert read_bytes(tmp_path / "link", 7) == b"content"


def test_an_object_is_read_from_json(tmp_path: Path) -> None:
    (tmp_path / "object").write_text('{"a": [1]}')
    assert read_object(tmp_path / "object") == {"a": [1]}


def test_json_that_is_no_text_is_damaged(tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b"a\n\xff")
    with pytest.raises(FileError, match=r"bytes: damaged"):
        read_object(tmp_path / "bytes")


# --- writing ---------------------------------------------------------------------------------


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


_WRITING = """
import sys, time
from pathlib import Path
from onmt_entmax.files import replaced_when_done, write_folder

def wait():
    print("ready", flush=True)
    time.sleep(60)

def fill(folder):
    folder.mkdir()
    wait()

if sys.argv[1] == "file":
    with replaced_when_done([Path("file")]) as (file,):
        file.write("half")
        wait()
else:
    write_folder(Path("folder"), fill)
"""


@pytest.mark.parametrize(
    ("number", "status", "left"),
    [
        (signal.SIGKILL, -signal.SIGKILL, 1),  # nobody can remove the temporary file
        (signal.SIGTERM, 128 + signal.SIGTERM, 0),
        (signal.SIGHUP, 128 + signal.SIGHUP, 0),
        (signal.SIGINT, -signal.SIGINT, 0),
    ],
)
@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_process_that_is_ended_leaves_the_old(
    tmp_path: Path, number: int, status: int, left: int, kind: str
) -> None:
    (tmp_path / "file").write_text("before")
    (tmp_path / "folder").mkdir()
    command = [sys.executable, "-c", _WRITING, kind]
    with subprocess.Popen(
        command, stdout=-1, stderr=subprocess.DEVNULL, cwd=tmp_path, env=ENVIRONMENT
    ) as process:
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(number)
        assert process.wait(30) == status
    assert (tmp_path / "file").read_text() == "before"
    temporary = names(tmp_path) - {"file", "folder"}
    assert len(temporary) == left
    assert all(name.startswith(f".{kind}.") and name.endswith(".tmp") for name in temporary)


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


@pytest.mark.parametrize("name", ["folder", "loop/x", "large/x", "a\0b", "x" * 300], ids=repr)
def test_a_file_that_cannot_be_written_is_one_line_that_names_it(tmp_path: Path, name: str) -> None:
    make_unreadable_files(tmp_path)
    with pytest.raises(FileError, match=r"^[^\n]+$") as raised:
        write_text(tmp_path / name, "text")
    assert repr(name)[1:-1] in str(raised.value)


class TestAFile:
    """Stays as it is where something else should be written."""

    @pytest.fixture(autouse=True)
    def file(self, tmp_path: Path) -> Iterator[Path]:
        file = tmp_path / "file"
        file.write_text("before")
        (tmp_path / "link").symlink_to("file")
        yield file
        assert file.read_text() == "before"

    @pytest.mark.parametrize("name", ["file", "link"])
    def test_is_no_folder_for_another(self, tmp_path: Path, name: str) -> None:
        with pytest.raises(FileError, match=f"since {tmp_path / name} is a file, not a folder"):
            write_text(tmp_path / name / "below" / "x", "text")

    def test_is_not_replaced_by_a_folder(self, file: Path) -> None:
        with pytest.raises(FileError, match="file: is a file"):
            write_folder(file, Path.mkdir)

    def test_is_not_written_under_two_names(self, tmp_path: Path, file: Path) -> None:
        with pytest.raises(FileError, match="is to be written twice"):
            write_files({file: "", tmp_path / "link": ""})

    def test_is_not_replaced_without_permission(
        self, file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(os, "access", lambda *_: False)  # root may write everything
        with pytest.raises(FileError, match=r"file: cannot be written .Permission denied"):
            write_text(file, "text")


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_folder_that_cannot_take_its_place_leaves_the_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def write(text: str) -> None:
        def fill(path: Path) -> None:
            path.mkdir()
            (path / "weights").write_text(text)

        write_folder(tmp_path / "step_1", fill)

    write("old")
    write("newer")
    replace = os.replace

    def replace_or_fail(source: Path, target: Path) -> None:
        if str(source).endswith(".tmp"):
            raise error
        replace(source, target)

    monkeypatch.setattr(os, "replace", replace_or_fail)
    with pytest.raises((FileError, KeyboardInterrupt), match=r"No space left|^$"):
        write("newest")
    assert (tmp_path / "step_1" / "weights").read_text() == "newer"
    assert names(tmp_path) == {"step_1", "step_1/weights"}


def test_other_files_may_be_overwritten(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    refuse_overwriting([tmp_path / "a", None, Path("/dev/stdin")], [tmp_path / "b", None])


@pytest.mark.parametrize("name", ["soft", "hard"])
def test_inputs_are_not_overwritten_under_another_name(tmp_path: Path, name: str) -> None:
    """A hard link is as a name in another case, on some disks."""
    (tmp_path / "a").touch()
    (tmp_path / "soft").symlink_to("a")
    (tmp_path / "hard").hardlink_to(tmp_path / "a")
    with pytest.raises(FileError, match=f"{name}: is read, and would be overwritten"):
        refuse_overwriting([tmp_path / "a"], [tmp_path / name])


def test_a_hyphen_is_no_output() -> None:
    with pytest.raises(FileError, match="-: the standard output is /dev/stdout"):
        refuse_overwriting([], [Path("-")])


@pytest.mark.parametrize("name", ["model.safetensors", "vocab.json", "SHA256SUMS"])
def test_files_of_a_model_are_not_overwritten(tmp_path: Path, name: str) -> None:
    for file in ("model.safetensors", "vocab.json"):
        (tmp_path / file).touch()
    with pytest.raises(FileError, match=f"{name}: is a file of a model"):
        refuse_overwriting([], [tmp_path / name])


def test_other_files_of_a_models_folder_may_be_overwritten(tmp_path: Path) -> None:
    for file in ("model.safetensors", "vocab.json", "output"):
        (tmp_path / file).touch()
    refuse_overwriting([], [tmp_path / "output"])


# --- locks and temporary folders -------------------------------------------------------------


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


def test_a_second_signal_does_not_end_the_removal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rmtree = shutil.rmtree

    def remove_under_a_signal(*arguments: object, **keywords: object) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        rmtree(*arguments, **keywords)

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(shutil, "rmtree", remove_under_a_signal)
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


_WORKING = """
import sys, time
from pathlib import Path
from onmt_entmax.files import locked
with locked(Path(sys.argv[1])):
    print("ready", flush=True)
    time.sleep(60)
"""


def test_one_process_works_in_a_folder(tmp_path: Path) -> None:
    run = tmp_path / "run"
    command = [sys.executable, "-c", _WORKING, run]
    with subprocess.Popen(command, stdout=-1, env=ENVIRONMENT) as process:
        assert process.stdout.readline() == b"ready\n"
        with pytest.raises(FileError, match="run: another process works here"), locked(run):
            pytest.fail("both work there")
        process.kill()
    with locked(run):  # another process may work there afterwards
        (run / "file").touch()


def fail_in(folder: Path) -> None:
    with pytest.raises(ZeroDivisionError), locked(folder):
        raise ZeroDivisionError


def test_a_new_folder_that_is_empty_is_removed_after_an_error(tmp_path: Path) -> None:
    fail_in(tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_folder_with_a_file_stays_after_an_error(tmp_path: Path) -> None:
    write_files({tmp_path / "run" / "file": ""})
    fail_in(tmp_path / "run")
    assert (tmp_path / "run" / "file").exists()


def test_a_link_to_an_empty_folder_stays_after_an_error(tmp_path: Path) -> None:
    (tmp_path / "scratch").mkdir()
    (tmp_path / "link").symlink_to("scratch")
    fail_in(tmp_path / "link")
    assert (tmp_path / "link").is_dir()


# --- lists of checksums ----------------------------------------------------------------------


@pytest.fixture
def listed(tmp_path: Path) -> Path:
    """A folder of two files with a list of their checksums."""
    write_files({tmp_path / "a": "a", tmp_path / "b" / "a": "b"})
    write_list(tmp_path)
    return tmp_path


def test_a_list_is_one_of_sha256sum(listed: Path) -> None:
    check = ["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"]
    assert subprocess.run(check, cwd=listed).returncode == 0


def test_a_folder_that_was_not_changed_is_read(listed: Path) -> None:
    assert differences(listed) == []
    assert read_checked(listed, "b/a", 1) == b"b"


CHANGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "another content": (lambda path: path.write_text("other"), "its content is not what was writ"),
    "a file is missing": (Path.unlink, "is missing"),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", ["a", "b/a"])
def test_a_changed_file_of_a_listed_folder_is_named_and_not_read(
    listed: Path, change: str, name: str
) -> None:
    make, message = CHANGES[change]
    make(listed / name)
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
    """It would never end."""
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


# --- JSON ------------------------------------------------------------------------------------


@pytest.mark.parametrize("write", [json_line, json_text])
def test_json_has_no_number_that_is_not_finite(write: Callable[[object], str]) -> None:
    content = {"a": [math.inf, (-math.inf, 1.5)], "b": {"c": math.nan}, "d": "ä", "e": None, "f": 1}
    text = write(content)
    expected = {"a": [None, [None, 1.5]], "b": {"c": None}, "d": "ä", "e": None, "f": 1}
    assert parse_json(text) == expected
    assert text.endswith("}\n")


def test_a_json_line_is_one_line() -> None:
    assert json_line({"a": [1, 2], "b": "x\ny"}).count("\n") == 1
