"""Reading text line by line, atomic writing, and locked folders."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import shutil
import signal
import stat
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import IO

from onmt_entmax.errors import UserError

FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}  # errors of a full disk


class FileError(UserError):
    """A file that cannot be read or written; the message names it."""


# --- reading ---------------------------------------------------------------------------------


def read_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a UTF-8 text file, without line ends and byte order mark.

    Only line feeds end a line: other separators that Unicode has may occur within a sentence, and
    line N of one file belongs to line N of another.

    Raises:
        FileError: the file cannot be read, or a line is not UTF-8.
    """
    try:
        with open(path, "rb") as file:
            yield from text_lines(file, str(path))
    except OSError as error:
        raise FileError(f"{path}: cannot be read ({error.strerror})") from None


def text_lines(file: Iterable[bytes], name: str) -> Iterator[str]:
    """Yield the lines of an open file as `read_lines` does; `name` is for its error."""
    for number, line in enumerate(file, 1):
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise FileError(f"{name}:{number}: not UTF-8 text ({error.reason})") from None
        yield text.removesuffix("\n").removesuffix("\r")


def count_lines(path: Path) -> int:
    """Return the number of lines that `read_lines` yields, without decoding them.

    Raises:
        FileError: the file cannot be read.
    """
    try:
        with open(path, "rb") as file:
            return sum(1 for _ in file)
    except OSError as error:
        raise FileError(f"{path}: cannot be read ({error.strerror})") from None


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
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise FileError(f"{path}: is not a regular file")
            content = file.read(at_most + 1)
    except OSError as error:
        raise FileError(f"{path}: cannot be read ({error.strerror})") from None
    if len(content) > at_most:
        raise FileError(f"{path}: is larger than the {at_most:,} bytes that such a file may have")
    return content


# --- writing ---------------------------------------------------------------------------------


def write_atomically(target: Path, write: Callable[[Path], None]) -> None:
    """Write a temporary file or folder, flush it to disk, and rename it to `target`.

    After an error or a kill, `target` is either unchanged or complete. Replacing a folder takes two
    renames; a kill between them leaves the old folder as `.NAME.old`.

    Args:
        target: what to write; a folder replaces only a folder.
        write: called with the temporary path, to fill it.

    Raises:
        FileError: it cannot be written.
    """
    temporary = _temporary(target)
    with _ended_by_exception():
        _remove(temporary)  # left by a killed process with the same number
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            write(temporary)
            for path in [*temporary.rglob("*"), temporary]:
                _flush(path)
            if target.is_dir() and not temporary.is_dir():
                raise FileError(f"{target}: is a folder, not a file to write")
            _take_place(temporary, target)
            _flush(target.parent)
        except OSError as error:
            raise FileError(f"{target}: cannot be written ({error.strerror})") from None
        finally:
            _remove(temporary)


def write_text(target: Path, text: str) -> None:
    """Write a text file atomically: see `write_atomically`."""

    def write(temporary: Path) -> None:
        temporary.write_text(text, encoding="utf-8")

    write_atomically(target, write)


def _take_place(temporary: Path, target: Path) -> None:
    """Rename a file or folder to `target`, which it replaces."""
    if not target.is_dir():
        os.replace(temporary, target)
        return
    old = target.with_name(f".{target.name}.old")  # a folder cannot be renamed over another
    shutil.rmtree(old, ignore_errors=True)
    os.replace(target, old)
    try:
        os.replace(temporary, target)
    except BaseException:  # also an interrupt, which may come after the rename
        if not target.exists():
            os.replace(old, target)
        raise
    shutil.rmtree(old)


@contextmanager
def replaced_when_done(paths: Sequence[Path]) -> Iterator[list[IO[str]]]:
    """Open text files that get their names only if the block ends without an error.

    Symbolic links are followed. Devices and pipes, such as `/dev/stdout`, are written directly.

    Raises:
        FileError: a file cannot be written, or two are the same; if possible, before the block
            starts.
    """
    direct = [is_stream(path) for path in paths]
    targets = [
        path.resolve() if path.is_symlink() and not stays else path
        for path, stays in zip(paths, direct, strict=True)
    ]
    for path, target in zip(paths, targets, strict=True):
        if path.is_dir():
            raise FileError(f"{path}: is a folder, not a file to write")
        if sum(target.absolute() == other.absolute() for other in targets) > 1:
            raise FileError(f"{path}: is to be written twice; give each output a file of its own")
    places = [t if stays else _temporary(t) for t, stays in zip(targets, direct, strict=True)]
    with ExitStack() as stack:
        stack.enter_context(_ended_by_exception())
        files: list[IO[str]] = []
        for path, place, stays in zip(paths, places, direct, strict=True):
            if not stays:
                stack.callback(_remove, place)
            with _naming(path):
                mode = "a" if stays else "w"
                files.append(stack.enter_context(open(place, mode, encoding="utf-8")))
        try:
            yield files
        except OSError as error:
            if error.errno not in FULL:  # not about these files
                raise
            names = " or ".join(map(str, paths))
            raise FileError(f"{names}: cannot be written ({error.strerror})") from None
        for path, file, place, target in zip(paths, files, places, targets, strict=True):
            with _naming(path):
                file.close()
                os.replace(place, target)


@contextmanager
def _ended_by_exception() -> Iterator[None]:
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


def write_files(texts: Mapping[Path, str]) -> None:
    """Write several text files and create their folders: see `replaced_when_done`.

    Raises:
        FileError: a folder or file cannot be written; none of the files was changed, unless the
            last step, renaming, fails.
    """
    for path in texts:
        with _naming(path):
            path.parent.mkdir(parents=True, exist_ok=True)
    with replaced_when_done(list(texts)) as files:
        for file, text in zip(files, texts.values(), strict=True):
            file.write(text)


def refuse_overwriting(read: Iterable[Path | None], written: Iterable[Path | None]) -> None:
    """Refuse outputs that would replace an input.

    Devices and pipes may be both; None stands for a file that is not used.

    Raises:
        FileError: names the file.
    """
    sources = {path.resolve() for path in read if path is not None and not is_stream(path)}
    for path in written:
        if path is not None and path.resolve() in sources:
            raise FileError(f"{path}: is read, and would be overwritten; name another output")


def is_stream(path: Path) -> bool:
    """Whether a path is a device or a pipe, which cannot be replaced by a file."""
    if re.fullmatch(r"/dev/(stdin|stdout|stderr|fd/.*)|/proc/.*", str(path.absolute())):
        return True
    return path.exists() and not path.is_file() and not path.is_dir()


def _remove(path: Path) -> None:
    """Remove a file or a folder, if possible."""
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Raise errors of the system as a FileError that names the file."""
    try:
        yield
    except OSError as error:
        raise FileError(f"{path}: cannot be written ({error.strerror})") from None


def _temporary(target: Path) -> Path:
    """Return the temporary path for `target`, on the same disk."""
    return target.with_name(f".{target.name}.{os.getpid()}.tmp")


def _flush(path: Path) -> None:
    """Flush a file or folder to disk, so that it survives a power cut."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# --- locks -----------------------------------------------------------------------------------

_LOCK = ".lock"


@contextmanager
def locked(folder: Path) -> Iterator[IO[str] | None]:
    """Lock a folder, which is created if necessary; yield None if another process holds the lock.

    The lock belongs to the open file that is yielded: child processes that inherit the file hold it
    too, until the last of them ends. A file system without locks gives no protection.

    Raises:
        FileError: the folder cannot be created or written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = open(folder / _LOCK, "w", encoding="utf-8")  # noqa: SIM115
    except OSError as error:
        raise FileError(f"{folder}: cannot be written ({error.strerror})") from None
    with file:
        # Retry: `is_locked` holds the lock for a moment, and so do readers of a dead process.
        for _ in range(10):
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(0.05)
            except OSError:
                break
        else:
            yield None
            return
        yield file


def is_locked(folder: Path) -> bool:
    """Whether a process holds the lock of a folder."""
    try:
        with open(folder / _LOCK, encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        pass
    return False
