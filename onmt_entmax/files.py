"""Reading text line by line, and atomic writing."""

from __future__ import annotations

import errno
import json
import os
import re
import secrets
import shutil
import signal
import stat
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, TextIO

from onmt_entmax.errors import UserError, counted


class FileError(UserError):
    """A file that cannot be read or written; the message names it."""


@contextmanager
def naming(path: Path, failed: str = "written") -> Iterator[None]:
    """Raise errors of the system as a FileError that names the file.

    A closed pipe is left to `cli.ending`: the reader has had enough.

    Args:
        path: the file.
        failed: what the block does to it: "read" or "written".

    Raises:
        FileError: the block raised an OSError, or no file can have such a name.
    """
    if "\0" in str(path):
        raise FileError(f"{str(path)!a}: a null byte, which no file name has")
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise FileError(f"{path}: cannot be {failed} ({error.strerror or error})") from None


def followed(path: Path) -> Path:
    """Return the absolute path to which links lead; of a loop of links, one in the loop.

    `Path.resolve` raises RuntimeError for a loop.
    """
    with naming(path, "read"):
        return Path(os.path.realpath(path))


# --- reading ---------------------------------------------------------------------------------


def read_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a UTF-8 text file, without line ends and byte order mark.

    Only line feeds end a line: other separators that Unicode has may occur within a sentence, and
    line N of one file belongs to line N of another.

    Raises:
        FileError: the file cannot be read, or a line is not UTF-8.
    """
    with naming(path, "read"), open(path, "rb") as file:
        yield from text_lines(file, str(path))


def text_lines(file: Iterable[bytes], name: str) -> Iterator[str]:
    """Yield the lines of an open file as `read_lines` does; `name` is for its error."""
    for number, line in enumerate(file, 1):
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise FileError(f"{name}:{number}: not UTF-8 text ({error.reason})") from None
        yield text.removesuffix("\n").removesuffix("\r")


def read_aligned(*paths: Path) -> list[list[str]]:
    """Return the lines of files that belong together line by line.

    Raises:
        FileError: a file cannot be read, or has another number of lines than the first.
    """
    columns = [list(read_lines(path)) for path in paths]
    for path, lines in zip(paths, columns, strict=True):
        if len(lines) != len(columns[0]):
            found = counted(len(lines), "line")
            raise FileError(
                f"{path}: {found}, but {paths[0]} has {len(columns[0]):,}; they must correspond "
                "line by line"
            )
    return columns


def count_lines(path: Path) -> int:
    """Return the number of lines that `read_lines` yields, without decoding them.

    Raises:
        FileError: the file cannot be read.
    """
    with naming(path, "read"), open(path, "rb") as file:
        return sum(1 for _ in file)


def read_object(path: Path) -> dict[str, Any]:
    """Return the object of a JSON file that a command here wrote.

    Raises:
        FileError: it cannot be read, or holds something else.
    """
    with naming(path, "read"):
        content = path.read_bytes()
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise FileError(f"{path}: damaged; delete it, and run again")
    return found


def read_bytes(path: Path, at_most: int) -> bytes:
    """Return the content of a regular file of bounded size.

    For files that may come from a stranger: a pipe or a device would block, or never end.

    Args:
        path: links are followed.
        at_most: largest size in bytes.

    Raises:
        FileError: it is no regular file, larger than `at_most`, or cannot be read.
    """
    if "\0" in str(path):
        raise FileError(f"{str(path)!a}: a null byte, which no file name has")
    try:
        # Without O_NONBLOCK, opening a pipe waits for a writer.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(handle, "rb") as file:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):
                raise FileError(f"{path}: is not a regular file")
            # Not `at_most`: Python reserves as much memory as it is asked to read.
            content = file.read(min(status.st_size, at_most) + 1)
    except OSError as error:
        raise FileError(f"{path}: cannot be read ({error.strerror})") from None
    if len(content) > at_most:
        raise FileError(f"{path}: is larger than the {at_most:,} bytes that such a file may have")
    return content


# --- writing ---------------------------------------------------------------------------------

_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{16}\.tmp")
# Open files of this process; `/proc/self/fd/1` is what the link `/dev/stdout` leads to.
_OPEN_FILE = re.compile(r"/dev/(?:stdin|stdout|stderr)|/(?:dev|proc/self)/fd/(\d+)")
_STANDARD = {"/dev/stdin": 0, "/dev/stdout": 1, "/dev/stderr": 2}
_LONGEST_CHAIN = 40  # links that Linux follows
_KEPT = 40  # characters of a name that its temporary name keeps; a file name has 255 bytes


@dataclass(frozen=True)
class _Output:
    """A file, folder or stream to write.

    Attributes:
        path: as the user named it, for messages.
        target: where links lead.
        place: what to write: a temporary name beside `target`, or `target` if it is a stream.
        mode: type and permissions of what is there now; 0 if nothing is.
    """

    path: Path
    target: Path
    place: Path
    mode: int

    @property
    def stream(self) -> bool:
        """Whether it is written in place."""
        return self.place == self.target


def _output(path: Path, folder: bool = False) -> _Output:
    """Decide how to write a path: every writer of this package begins here.

    Links are followed: a link stays, and what it leads to is replaced or created. Devices, pipes
    and open files are written in place.

    Args:
        path: what to write.
        folder: whether it is to become a folder.

    Raises:
        FileError: it is of another kind, or a disk, a loop of links, or protected.
    """
    mode = 0
    with naming(path):
        stream = is_stream(path)
        target = path if stream else followed(path)
        with suppress(FileNotFoundError):
            mode = os.stat(target).st_mode
        if stat.S_ISBLK(mode):
            raise FileError(f"{path}: is a disk, not a file to write")
        if stat.S_ISDIR(mode) and not folder:
            raise FileError(f"{path}: is a folder, not a file to write")
        if mode and folder and not stat.S_ISDIR(mode):
            raise FileError(f"{path}: is a file, not a folder to write")
        if mode and not os.access(target, os.W_OK):  # a rename would not mind
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    # Nobody can plant a link at a name that nobody can guess; `_TEMPORARY` matches it.
    temporary = f".{target.name[:_KEPT]}.{secrets.token_hex(8)}.tmp"
    return _Output(path, target, target if stream else target.parent / temporary, mode)


def is_stream(path: Path) -> bool:
    """Whether a path is or leads to a device, a pipe or an open file, which no file can replace."""
    place = os.path.abspath(path)
    for _ in range(_LONGEST_CHAIN):
        if _OPEN_FILE.fullmatch(place):
            return True
        if not os.path.islink(place):
            break
        place = os.path.abspath(os.path.join(os.path.dirname(place), os.readlink(place)))
    # Unlike the methods of Path, these functions raise no errors.
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)


@contextmanager
def _folders_for(path: Path) -> Iterator[None]:
    """Create the missing folders above a path, and remove those that stay empty."""
    missing = [folder for folder in path.absolute().parents if not folder.exists()]
    try:
        with naming(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        yield
    finally:
        for folder in missing:  # the innermost comes first
            with suppress(OSError):
                folder.rmdir()


def _open(output: _Output) -> TextIO:
    """Open a stream, or a new temporary file with the permissions of the file it will replace."""
    if not output.stream:
        new = os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        handle = os.open(output.place, os.O_WRONLY | new | os.O_CLOEXEC, 0o666)
        if output.mode:
            os.fchmod(handle, output.mode & 0o777)
    elif own := _OPEN_FILE.fullmatch(os.path.abspath(output.place)):
        # Opened anew, a regular file would have a position of its own, and what this process
        # prints would overwrite the output.
        sys.stdout.flush()
        handle = os.dup(int(own[1]) if own[1] else _STANDARD[own[0]])
    else:
        handle = os.open(output.place, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
    return open(handle, "w", encoding="utf-8")


@contextmanager
def replaced_when_done(paths: Sequence[Path]) -> Iterator[list[TextIO]]:
    """Open text files that get their names only if the block ends without an error.

    After an error or a kill, each file is either unchanged or complete. Missing folders are
    created. Links are followed. Devices and pipes, such as `/dev/stdout`, are written directly.

    Raises:
        FileError: a file cannot be written, or two are the same; if possible, before the block
            starts.
    """
    outputs = [_output(path) for path in paths]
    for output in outputs:
        if sum(output.target == other.target for other in outputs) > 1:
            raise FileError(
                f"{output.path}: is to be written twice; give each output a file of its own"
            )
    with ExitStack() as stack:
        stack.enter_context(ended_by_exception())
        files: list[TextIO] = []
        for output in outputs:
            stack.enter_context(_folders_for(output.path))
            if not output.stream:
                stack.callback(_remove, output.place)
            with naming(output.path):
                files.append(_open(output))
            stack.callback(_discard, files[-1])
        try:
            yield files
        except OSError as error:
            if error.filename is not None or isinstance(error, BrokenPipeError):
                raise  # not about these files
            names = " or ".join(map(str, paths))
            raise FileError(f"{names}: cannot be written ({error.strerror or error})") from None
        for output, file in zip(outputs, files, strict=True):
            with naming(output.path):
                file.flush()
                if not output.stream:
                    os.fsync(file.fileno())
                file.close()
        for output in outputs:
            if not output.stream:
                with naming(output.path):
                    os.replace(output.place, output.target)
                    _flush(output.target.parent)


def write_files(contents: Mapping[Path, str | bytes]) -> None:
    """Write several files: see `replaced_when_done`.

    Raises:
        FileError: a folder or file cannot be written; none of the files was changed, unless the
            last step, renaming, fails.
    """
    with replaced_when_done(list(contents)) as files:
        for file, content in zip(files, contents.values(), strict=True):
            file.buffer.write(content.encode() if isinstance(content, str) else content)


def write_text(path: Path, text: str) -> None:
    """Write a text file: see `replaced_when_done`."""
    write_files({path: text})


def write_folder(folder: Path, write: Callable[[Path], None]) -> None:
    """Write a temporary folder, flush it to disk, and rename it to `folder`.

    After an error or a kill, `folder` is either unchanged or complete. Replacing it takes two
    renames; a kill between them leaves the old one as `.NAME.old`.

    Args:
        folder: what to write; it replaces only a folder.
        write: called with the temporary path, to create and fill it.

    Raises:
        FileError: it cannot be written.
    """
    output = _output(folder, folder=True)
    with ExitStack() as stack:
        stack.enter_context(ended_by_exception())
        stack.enter_context(_folders_for(folder))
        stack.callback(_remove, output.place)
        with naming(folder):
            write(output.place)
            for path in [*output.place.rglob("*"), output.place]:
                _flush(path)
            _take_place(output.place, output.target)
            _flush(output.target.parent)


def _take_place(temporary: Path, target: Path) -> None:
    """Rename a folder to `target`, which it replaces."""
    if not target.is_dir():
        os.replace(temporary, target)
        return
    old = target.with_name(f".{target.name}.old")  # a folder cannot be renamed over another
    _remove(old)
    os.replace(target, old)
    try:
        os.replace(temporary, target)
    except BaseException:  # also an interrupt, which may come after the rename
        if not target.exists():
            os.replace(old, target)
        raise
    shutil.rmtree(old)


@contextmanager
def ended_by_exception() -> Iterator[None]:
    """Turn SIGTERM and SIGHUP into SystemExit, so that temporary files are removed.

    The exit status is 128 plus the signal, as in a shell. Signals with a handler keep it.
    """

    def end(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    heard = []
    if threading.current_thread() is threading.main_thread():
        heard = [
            n for n in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) is signal.SIG_DFL
        ]
    for number in heard:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in heard:
            signal.signal(number, signal.SIG_DFL)


def refuse_overwriting(read: Iterable[Path | None], written: Iterable[Path | None]) -> None:
    """Refuse outputs that would replace an input, and the name that other programs give to stdout.

    Devices and pipes may be both; None stands for a file that is not used.

    Raises:
        FileError: names the file.
    """
    sources = {followed(path) for path in read if path is not None and not is_stream(path)}
    for path in written:
        if path == Path("-"):
            raise FileError("-: the standard output is /dev/stdout here")
        if path is not None and followed(path) in sources:
            raise FileError(f"{path}: is read, and would be overwritten; name another output")


def _remove(path: Path) -> None:
    """Remove a file or a folder, if possible."""
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def remove_temporaries(folder: Path) -> None:
    """Delete what killed writers left in a folder; the caller has locked it."""
    for path in folder.iterdir():
        if _TEMPORARY.fullmatch(path.name):
            _remove(path)


def _discard(file: TextIO) -> None:
    """Close a file; of a failed output, what is still in memory may go."""
    with suppress(OSError):
        file.close()


def _flush(path: Path) -> None:
    """Flush a file or folder to disk, so that it survives a power cut."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
