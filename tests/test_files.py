"""Reading lines, atomic writing and locks."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from onmt_entmax.files import (
    FileError,
    count_lines,
    is_stream,
    read_bytes,
    read_lines,
    replaced_when_done,
    write_atomically,
)


def test_lines_end_at_line_feeds_only(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes("\ufeffa b\rc\r\nd\u2028e\x0bf\n\n\ufeffg".encode())
    assert list(read_lines(path)) == ["a b\rc", "d\u2028e\x0bf", "", "\ufeffg"]
    assert count_lines(path) == 4


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
    with pytest.raises(FileError, match="is a folder, not a file to write"):
        write_atomically(tmp_path / "folder", lambda path: path.write_text("page") and None)
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
    def fill() -> None:
        with replaced_when_done([Path("/dev/full")]) as (file,):
            file.write("x" * 100_000)
            file.flush()

    with pytest.raises(FileError, match=r"/dev/full: cannot be written \(No space left"):
        fill()
    assert Path("/dev/full").is_char_device()


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

        write_atomically(tmp_path / "step_1", fill)

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


def test_the_standard_output_is_written_to_wherever_it_goes(tmp_path: Path) -> None:
    code = (
        "from pathlib import Path\n"
        "from onmt_entmax.files import replaced_when_done\n"
        "print('first', flush=True)\n"
        "with replaced_when_done([Path('/dev/stdout')]) as (file,):\n"
        "    file.write('second\\n')\n"
        "print('third')\n"
    )
    with open(tmp_path / "out", "a") as out:
        subprocess.run([sys.executable, "-c", code], stdout=out, check=True)
    assert (tmp_path / "out").read_text() == "first\nsecond\nthird\n"


OPENED = "with replaced_when_done([path]) as (file,):\n    wait(file.write)\n"
WHOLE = "write_atomically(path, lambda place: wait(place.write_text))\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
@pytest.mark.parametrize("how", [OPENED, WHOLE])
def test_a_signal_leaves_nothing_behind(tmp_path: Path, number: signal.Signals, how: str) -> None:
    path = tmp_path / "text"
    path.write_text("before")
    script = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from onmt_entmax.files import replaced_when_done, write_atomically\n"
        "path = Path(sys.argv[1])\n"
        "def wait(write):\n"
        "    write('half')\n"
        "    print('ready', flush=True)\n"
        "    time.sleep(60)\n"
    )
    command = [sys.executable, "-c", script + how, str(path)]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        # A background job of a shell ignores SIGINT, and nohup ignores SIGHUP.
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),
    )
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


def test_a_temporary_file_of_a_killed_namesake_is_no_obstacle(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    (tmp_path / f".model.{os.getpid()}.tmp").mkdir()

    def write(place: Path) -> None:
        place.mkdir()
        (place / "weights").touch()

    write_atomically(folder, write)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["model", "weights"]


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
    for path in ("/dev/stdout", "/dev/stdin", "/dev/null", "/dev/fd/7", "/proc/self/fd/1", pipe):
        assert is_stream(Path(path))
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
        with pytest.raises(FileError, match="is not a regular file|directory"):
            read_bytes(path, 5)
    for path in (tmp_path / "loop", tmp_path / "missing", tmp_path / "a\0b"):
        with pytest.raises(FileError, match=r"cannot be read|null byte"):
            read_bytes(path, 5)
