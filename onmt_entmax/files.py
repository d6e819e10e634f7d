"""Files: text that is read line by line, and what is written whole or not at all."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import IO

from onmt_entmax.errors import UserError

FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}  # what a full disk says


class FileError(UserError):
    """A file that cannot be read or written; the message names it."""


# --- reading ---------------------------------------------------------------------------------


def read_lines(path: Path) -> Iterator[str]:
    """The lines of a text file in UTF-8, without their ends.

    They are divided at line feeds only, as everywhere here: other signs that some take for an end
    of line may occur within a sentence, and line N of one file belongs to line N of another.

    Raises:
        FileError: the file cannot be read, or a line is not UTF-8.
    """
    try:
        with open(path, "rb") as file:
            yield from text_lines(file, str(path))
    except OSError as error:
        raise FileError(f"{path}: cannot be read ({error.strerror})") from None


def text_lines(file: Iterable[bytes], name: str) -> Iterator[str]:
    """The lines of an open file as `read_lines` has them; `name` is for its error."""
    for number, line in enumerate(file, 1):
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise FileError(f"{name}:{number}: not UTF-8 text ({error.reason})") from None
        yield text.removesuffix("\n").removesuffix("\r")


def count_lines(path: Path) -> int:
    """How many lines `read_lines` gives, without reading them as text.

    Raises:
        FileError: the file cannot be read.
    """
    try:
        with open(path, "rb") as file:
            return sum(1 for _ in file)
    except OSError as error:
        raise FileError(f"{path}: cannot be read ({error.strerror})") from None


# --- writing ---------------------------------------------------------------------------------


def write_atomically(target: Path, write: Callable[[Path], None]) -> None:
    """Let `write` fill a temporary file or folder, flush it to disk, and rename it to `target`.

    Whatever happens on the way, `target` is either what it was before or the whole new thing. A
    folder takes the place of a folder only; killed between the two steps that this takes, it
    leaves the old one beside, as `.NAME.old`.

    Raises:
        FileError: the place cannot be written.
    """
    temporary = _temporary(target)
    with _leaving_nothing():
        _remove(temporary)  # of a process that had the same number and was killed
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
    """Write a text file, whole or not at all: see `write_atomically`."""

    def write(temporary: Path) -> None:
        temporary.write_text(text, encoding="utf-8")

    write_atomically(target, write)


def _take_place(temporary: Path, target: Path) -> None:
    """Rename a file or folder to `target`, whatever was there."""
    if not target.is_dir():
        os.replace(temporary, target)
        return
    old = target.with_name(f".{target.name}.old")  # a folder cannot be renamed over another
    shutil.rmtree(old, ignore_errors=True)
    os.replace(target, old)
    try:
        os.replace(temporary, target)
    except BaseException:  # an interrupt, too, which may come when it is done
        if not target.exists():
            os.replace(old, target)
        raise
    shutil.rmtree(old)


@contextmanager
def replaced_when_done(paths: Sequence[Path]) -> Iterator[list[IO[str]]]:
    """Open text files that take their names only when the block ends without an error.

    What a link points to is replaced, and not the link. To a device or a pipe, `/dev/stdout` in
    whatever place, is written directly.

    Raises:
        FileError: one of them cannot be written, or two are the same; raised before the block
            starts if so then.
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
        stack.enter_context(_leaving_nothing())
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
            if error.errno not in FULL:  # of whatever else the block does
                raise
            names = " or ".join(map(str, paths))
            raise FileError(f"{names}: cannot be written ({error.strerror})") from None
        for path, file, place, target in zip(paths, files, places, targets, strict=True):
            with _naming(path):
                file.close()
                os.replace(place, target)


@contextmanager
def _leaving_nothing() -> Iterator[None]:
    """Let a signal that would end the program at once end it as an exception does, with the status
    that a shell gives such an end, so that no temporary file stays; where nobody else hears it."""

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
    """Write several text files, and their folders: see `replaced_when_done`.

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
    """Refuse outputs that would replace what is read, before anything is done.

    None stands for what is not asked for; a device or a pipe may be read and written.

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
    """Remove a file or a folder if it is there and can be removed."""
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Name the file that an error of the system is about."""
    try:
        yield
    except OSError as error:
        raise FileError(f"{path}: cannot be written ({error.strerror})") from None


def _temporary(target: Path) -> Path:
    """Where something is written before it takes its name, on the same disk."""
    return target.with_name(f".{target.name}.{os.getpid()}.tmp")


def _flush(path: Path) -> None:
    """Make what is written at `path`, a file or a folder, survive a power cut."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# Folders in which one process at a time may work.

_LOCK = ".lock"


@contextmanager
def locked(folder: Path) -> Iterator[IO[str] | None]:
    """Hold the lock of a folder, which is made if need be; None where another process holds it.

    The lock belongs to the open file that is given: processes that inherit it hold it too. It ends
    with the last of them, however that ends. On a disk that has no locks there is none.

    Raises:
        FileError: there is no such folder and it cannot be made, or nothing can be written to it.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = open(folder / _LOCK, "w", encoding="utf-8")  # noqa: SIM115
    except OSError as error:
        raise FileError(f"{folder}: cannot be written ({error.strerror})") from None
    with file:
        for _ in range(
            10
        ):  # `is_locked` holds it for a moment, and so do readers of a dead process
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
