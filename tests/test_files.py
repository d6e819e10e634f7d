"""Reading lines, atomic writing and locks."""

import errno
import os
import secrets
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from onmt_entmax.files import (
    FileError,
    _output,
    count_lines,
    is_stream,
    read_aligned,
    read_bytes,
    read_lines,
    read_object,
    refuse_overwriting,
    replaced_when_done,
    write_files,
    write_folder,
    write_text,
)


def test_lines_end_at_line_feeds_only(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes("\ufeffa b\rc\r\nd\u2028e\x0bf\n\n\ufeffg".encode())
    assert list(read_lines(path)) == ["a b\rc", "d\u2028e\x0bf", "", "\ufeffg"]
    assert count_lines(path) == 4


def test_files_that_belong_together_have_as_many_lines(tmp_path: Path) -> None:
    for name, text in (("a", "1\n2\n"), ("b", "3\n4"), ("c", "5\n")):
        (tmp_path / name).write_text(text)
    a, b, c = (tmp_path / name for name in "abc")
    assert read_aligned(a, b) == [["1", "2"], ["3", "4"]]
    with pytest.raises(FileError, match=f"{c}: 1 line, but {a} has 2; they must correspond"):
        read_aligned(a, b, c)


@pytest.mark.parametrize("content", [b"", b"[1]", b"\xff", b"[" * 100_000, b'{"a": 1'])
def test_an_object_that_is_damaged_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "object"
    path.write_bytes(b'{"a": [1]}')
    assert read_object(path) == {"a": [1]}
    path.write_bytes(content)
    with pytest.raises(FileError, match=f"{path}: damaged; delete it, and run again"):
        read_object(path)


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    path = tmp_path / "text"
    for read in (lambda: list(read_lines(path)), lambda: count_lines(path)):
        with pytest.raises(FileError, match=r"text: cannot be read \(No such file"):
            read()
    path.write_bytes(b"a\n\xff\n")
    with pytest.raises(FileError, match=r"text:2: not UTF-8 text"):
        list(read_lines(path))


def test_a_file_never_takes_the_place_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "thesis.tex").write_text("years")
    with (
        pytest.raises(FileError, match="is a folder, not a file to write"),
        replaced_when_done([tmp_path / "folder"]),
    ):
        raise AssertionError("must not begin")
    assert (tmp_path / "folder" / "thesis.tex").read_text() == "years"
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_several_files_take_their_names_together(tmp_path: Path) -> None:
    paths = [tmp_path / "a", tmp_path / "b"]
    paths[0].write_text("before")

    def stop_halfway() -> None:
        with replaced_when_done(paths) as files:
            files[0].write("half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        stop_halfway()
    assert paths[0].read_text() == "before"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    with replaced_when_done(paths) as files:
        for file in files:
            file.write("whole")
    assert [path.read_text() for path in paths] == ["whole", "whole"]


def test_one_file_under_two_names_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("before")
    (tmp_path / "link").symlink_to("a")
    with (
        pytest.raises(FileError, match="is to be written twice"),
        replaced_when_done([tmp_path / "a", tmp_path / "link"]),
    ):
        raise AssertionError("must not begin")
    assert (tmp_path / "a").read_text() == "before"


def test_an_error_of_something_else_is_not_blamed_on_the_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), replaced_when_done([tmp_path / "out"]):
        open(tmp_path / "missing").close()
    assert not list(tmp_path.iterdir())


def test_a_full_disk_is(tmp_path: Path) -> None:
    """The device is of this test: root could replace that of the machine, if this fails."""
    path = device(tmp_path, stat.S_IFCHR, 1, 7)  # as /dev/full

    def fill() -> None:
        with replaced_when_done([path]) as (file,):
            file.write("x" * 100_000)
            file.flush()

    with pytest.raises(FileError, match=r"device: cannot be written \(No space left"):
        fill()
    assert path.is_char_device()


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), FileError),
        (KeyboardInterrupt(), KeyboardInterrupt),
    ],
)
def test_where_a_folder_cannot_take_its_place_the_old_one_stays(
    tmp_path: Path, monkeypatch, error: BaseException, raised: type[BaseException]
) -> None:
    def write(text: str) -> None:
        def fill(path: Path) -> None:
            path.mkdir()
            (path / "weights").write_text(text)

        write_folder(tmp_path / "step_1", fill)

    write("old")
    write("newer")
    assert (tmp_path / "step_1" / "weights").read_text() == "newer"
    replace = os.replace

    def full(source: Path, target: Path) -> None:
        if str(source).endswith(".tmp"):
            raise error
        replace(source, target)

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(raised, match="No space left" if raised is FileError else None):
        write("newest")
    assert (tmp_path / "step_1" / "weights").read_text() == "newer"
    assert [path.name for path in tmp_path.iterdir()] == ["step_1"]


@pytest.mark.parametrize("mode", ["a", "w"])
def test_the_standard_output_is_written_to_wherever_it_goes(tmp_path: Path, mode: str) -> None:
    code = (
        "from pathlib import Path\n"
        "from onmt_entmax.files import replaced_when_done\n"
        "print('first')\n"
        "with replaced_when_done([Path('/dev/stdout')]) as (file,):\n"
        "    file.write('second\\n')\n"
        "print('third')\n"
    )
    with open(tmp_path / "out", mode) as out:
        subprocess.run([sys.executable, "-c", code], stdout=out, check=True)
    assert (tmp_path / "out").read_text() == "first\nsecond\nthird\n"


OPENED = "with replaced_when_done([path]) as (file,):\n    wait(file.write)\n"
WHOLE = "write_folder(path.with_name('folder'), lambda place: wait(lambda _: place.mkdir()))\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
@pytest.mark.parametrize("how", [OPENED, WHOLE])
def test_a_signal_leaves_nothing_behind(tmp_path: Path, number: signal.Signals, how: str) -> None:
    path = tmp_path / "text"
    path.write_text("before")
    script = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from onmt_entmax.files import replaced_when_done, write_folder\n"
        "path = Path(sys.argv[1])\n"
        "def wait(write):\n"
        "    write('half')\n"
        "    print('ready', flush=True)\n"
        "    time.sleep(60)\n"
    )
    command = [sys.executable, "-c", script + how, str(path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    with process, process.stdout as said:
        assert said.readline() == b"ready\n"
        assert len(list(tmp_path.iterdir())) == 2
        process.send_signal(number)
        status = process.wait(30)
    # After SIGINT, Python ends like a program without a handler.
    assert status == (-number if number == signal.SIGINT else 128 + number)
    assert [each.name for each in tmp_path.iterdir()] == ["text"]
    assert path.read_text() == "before"


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def write(path: Path, text: str = "new") -> None:
    write_text(path, text)


def test_a_link_stays_and_what_it_leads_to_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "file").write_text("old")
    (tmp_path / "one").symlink_to("there/file")
    (tmp_path / "two").symlink_to("one")
    (tmp_path / "dangling").symlink_to("there/other")
    for name in "one", "two", "dangling":
        write(tmp_path / name, name)
        assert (tmp_path / name).is_symlink()
    assert (tmp_path / "there" / "file").read_text() == "two"
    assert (tmp_path / "there" / "other").read_text() == "dangling"
    assert len(list(tmp_path.rglob("*"))) == 6


def test_what_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "round").symlink_to("about")
    (tmp_path / "about").symlink_to("round")
    (tmp_path / "lost").symlink_to("nowhere/file")
    (tmp_path / "file").write_text("old")
    before = sorted(tmp_path.iterdir())
    for name, reason in {
        "loop": "Too many levels of symbolic links",
        "round": "Too many levels of symbolic links",
        "loop/file": "Too many levels of symbolic links",
        "lost": "No such file or directory",
        "file/below": "Not a directory",
        "x" * 300: "File name too long",
        "a\0b": "null byte",
        "": "is a folder, not a file to write",
        "..": "is a folder, not a file to write",
    }.items():
        with pytest.raises(FileError, match=reason):
            write(tmp_path / name)
        if name.strip("."):
            with pytest.raises(FileError, match=reason):
                write_folder(tmp_path / name, lambda place: place.mkdir())
    with pytest.raises(FileError, match="is a file, not a folder"):
        write_folder(tmp_path / "file", lambda place: place.mkdir())
    assert sorted(tmp_path.iterdir()) == before
    assert (tmp_path / "file").read_text() == "old"


def test_a_protected_file_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("old")
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write everything
    with pytest.raises(FileError, match=r"file: cannot be written \(Permission denied"):
        write(tmp_path / "file")
    assert (tmp_path / "file").read_text() == "old"


def device(tmp_path: Path, kind: int, major: int, minor: int) -> Path:
    path = tmp_path / "device"
    try:
        os.mknod(path, kind | 0o666, os.makedev(major, minor))
        path.open("ab").close()
    except PermissionError:
        pytest.skip("only root can make devices, on a file system that allows it")
    return path


def test_a_device_stays_a_device(tmp_path: Path) -> None:
    path = device(tmp_path, stat.S_IFCHR, 1, 3)  # as /dev/null
    (tmp_path / "link").symlink_to(path)
    for name in path, tmp_path / "link":
        write(name)
        assert path.is_char_device()
    with pytest.raises(FileError, match="is a file, not a folder"):
        write_folder(path, lambda place: place.mkdir())
    assert sorted(each.name for each in tmp_path.iterdir()) == ["device", "link"]


def test_a_disk_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "disk"
    path.write_text("old")
    monkeypatch.setattr(stat, "S_ISBLK", lambda mode: True)
    with pytest.raises(FileError, match="is a disk"):
        write(path)
    assert path.read_text() == "old"


def test_a_pipe_is_written_in_place(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write(pipe)
    assert os.read(reader, 10) == b"new"
    os.close(reader)
    assert pipe.is_fifo()


def test_missing_folders_are_created_and_removed_if_nothing_comes(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), replaced_when_done([tmp_path / "a" / "b" / "c"]):
        raise ZeroDivisionError
    assert not list(tmp_path.iterdir())
    write(tmp_path / "a" / "b" / "c")
    write_folder(tmp_path / "d" / "e", lambda place: place.mkdir())
    assert (tmp_path / "a" / "b" / "c").read_text() == "new"
    assert (tmp_path / "d" / "e").is_dir()


def test_permissions_are_those_of_the_old_file_or_of_the_umask(tmp_path: Path) -> None:
    path = tmp_path / "file"
    before = os.umask(0o027)
    try:
        write(path)
        assert mode_of(path) == 0o640
        path.chmod(0o604)
        write(path)
        assert mode_of(path) == 0o604
    finally:
        os.umask(before)


def test_nothing_planted_at_the_temporary_name_is_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If somebody could guess the name, the file would not be written, and nothing else either."""
    (tmp_path / "victim").write_text("precious")
    monkeypatch.setattr(secrets, "token_hex", lambda size: "0" * 2 * size)
    for plant in (
        lambda place: place.symlink_to(tmp_path / "victim"),
        lambda place: os.link(tmp_path / "victim", place),
        lambda place: place.symlink_to(tmp_path / "dangling"),
    ):
        plant(tmp_path / f".file.{'0' * 16}.tmp")
        with pytest.raises(FileError, match=r"file: cannot be written \(File exists"):
            write(tmp_path / "file")
        assert [path.name for path in tmp_path.iterdir()] == ["victim"]
        assert (tmp_path / "victim").read_text() == "precious"


def test_temporary_names_cannot_be_guessed_and_are_never_too_long(tmp_path: Path) -> None:
    name = "ä" * 127  # 254 bytes, one less than a name may have
    for path in [tmp_path / name] * 2:
        with replaced_when_done([path]) as (file,):
            file.write("new")
    names = {_output(tmp_path / name).place.name for _ in range(9)}
    assert len(names) == 9
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_if_one_of_several_files_cannot_be_finished_none_is_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [tmp_path / "a", tmp_path / "b"]
    for path in paths:
        path.write_text("old")
    left = iter([None, OSError(errno.ENOSPC, "No space left on device")])

    def flush(handle: int) -> None:
        if error := next(left):
            raise error

    monkeypatch.setattr(os, "fsync", flush)
    with pytest.raises(FileError, match=r"b: cannot be written \(No space left"):
        write_files(dict.fromkeys(paths, "new"))
    assert [path.read_text() for path in paths] == ["old", "old"]
    assert len(list(tmp_path.iterdir())) == 2


def test_a_file_larger_than_the_system_allows_is_named(tmp_path: Path) -> None:
    code = (
        "import resource, sys\n"
        "from pathlib import Path\n"
        "from onmt_entmax.files import write_text\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))\n"
        "write_text(Path(sys.argv[1]), 'x' * 100_000)\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "file")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1].endswith("file: cannot be written (File too large)")
    assert not list(tmp_path.iterdir())


def test_a_hyphen_is_no_output(tmp_path: Path) -> None:
    """Many programs write to the standard output then; a file of this name is hard to remove."""
    refuse_overwriting([], [tmp_path / "-", Path("/dev/stdout"), None])
    with pytest.raises(FileError, match="-: the standard output is /dev/stdout here"):
        refuse_overwriting([], [tmp_path / "other", Path("-")])


def test_loops_and_null_bytes_are_errors_of_one_line_for_readers(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    for name, reason in {"loop": "Too many levels", "a\0b": "null byte"}.items():
        path = tmp_path / name
        with pytest.raises(FileError, match=reason):
            list(read_lines(path))
        with pytest.raises(FileError, match=reason):
            count_lines(path)
    refuse_overwriting([tmp_path / "loop"], [tmp_path / "other"])
    with pytest.raises(FileError, match="null byte"):
        refuse_overwriting([tmp_path / "a\0b"], [tmp_path / "other"])


def test_signals_are_heard_by_others_again(tmp_path: Path) -> None:
    def mine(*_: object) -> None:
        raise AssertionError("nobody sends it")

    for handler in (signal.SIG_DFL, signal.SIG_IGN, mine):
        before = signal.signal(signal.SIGTERM, handler)
        try:
            with replaced_when_done([tmp_path / "text"]):
                listens = signal.getsignal(signal.SIGTERM)
                assert (listens is handler) == (handler is not signal.SIG_DFL)
            assert signal.getsignal(signal.SIGTERM) is handler
        finally:
            signal.signal(signal.SIGTERM, before)


def test_what_counts_as_a_stream(tmp_path: Path) -> None:
    """Devices, pipes and open files of a process are streams; a file in /dev/shm is not."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (tmp_path / "link").symlink_to("/dev/stdout")
    (tmp_path / "longer").symlink_to("link")
    for path in ("/dev/stdout", "/dev/stdin", "/dev/null", "/dev/fd/7", "/proc/self/fd/1", pipe):
        assert is_stream(Path(path))
    for name in "link", "longer":
        assert is_stream(tmp_path / name)
    for path in (tmp_path, tmp_path / "new", Path("/dev/shm/new"), Path("/dev/shm")):
        assert not is_stream(path)


def test_read_bytes_returns_a_whole_file_up_to_its_bound(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"12345")
    assert read_bytes(path, 5) == b"12345"
    with pytest.raises(FileError, match="larger than the 4 bytes"):
        read_bytes(path, 4)


def test_read_bytes_refuses_what_is_no_regular_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    for path in (tmp_path, tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(FileError, match=r"is not a regular file|directory"):
            read_bytes(path, 5)
    for path in (tmp_path / "loop", tmp_path / "missing", tmp_path / "a\0b"):
        with pytest.raises(FileError, match=r"cannot be read|null byte"):
            read_bytes(path, 5)
