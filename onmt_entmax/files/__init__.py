"""Text files, and writing that leaves either the old file or the whole new one."""

import errno
import json
import math
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
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any, TextIO

from onmt_entmax.errors import UserError, counted
from onmt_entmax.systems import ending_signals


class FileError(UserError):
    """A file that cannot be read or written; the message names it."""


@contextmanager
def naming(path: Path, failed: str = "written") -> Iterator[None]:
    """Raise errors of the system as a FileError that names the file.

    A closed pipe is left to `cli.ending`: the reader closed it on purpose.

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


def no_such_file(path: str | Path) -> str:
    """Return a message that says why a path is not a file."""
    if os.path.isdir(path):
        return f"{path} is a folder; name a file"
    if os.path.exists(path):
        return f"{path} is a pipe or a device, but is read more than once; name a file"
    searched = "" if os.path.isabs(path) else f" (searched in {Path.cwd()})"
    return f"no such file: {path}{searched}"


# --- reading ---------------------------------------------------------------------------------


def read_lines(path: Path, name: str = "") -> Iterator[str]:
    """Yield the lines of a UTF-8 text file, without line ends and byte order mark.

    Only line feeds end a line: other separators that Unicode has may occur within a sentence, and
    line N of one file belongs to line N of another.

    Args:
        path: of the file.
        name: what people call it, if that is not its path.

    Raises:
        FileError: the file cannot be read, or a line is not UTF-8.
    """
    with naming(path, "read"), open(path, "rb") as file:
        yield from text_lines(file, name or str(path))


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
    check_aligned(dict(zip(paths, map(len, columns), strict=True)))
    return columns


def check_aligned(lengths: Mapping[Path, int]) -> None:
    """Check that files have as many lines as the first of them.

    Raises:
        FileError: names the first that has not.
    """
    (first, expected), *others = lengths.items()
    for path, length in others:
        if length != expected:
            raise FileError(
                f"{path}: {counted(length, 'line')}, but {first} has {expected:,}; they must "
                "correspond line by line"
            )


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
        text = path.read_bytes()
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise FileError(f"{path}: damaged; delete it, and run again")
    return content


def read_bytes(path: Path, at_most: int) -> bytes:
    """Return the content of a regular file, which is the only kind that cannot block.

    Args:
        path: links are followed.
        at_most: largest size in bytes.

    Raises:
        FileError: it is no regular file, larger than `at_most`, or cannot be read.
    """
    with naming(path, "read"):
        if path.exists() and not path.is_file():
            raise FileError(f"{path}: is not a regular file")
        if path.stat().st_size > at_most:
            raise FileError(f"{path}: is larger than the {at_most:,} bytes that it may have")
        return path.read_bytes()


# --- writing ---------------------------------------------------------------------------------

# Files of a model folder; no other folder has the first.
_OF_MODEL = ("model.safetensors", "config.yaml", "vocab.json", "cells.tsv", "SHA256SUMS")

# Open files of this process, which may be regular: `-output /dev/stdout >> all` appends.
_OPEN_FILE = re.compile(r"/dev/(stdin|stdout|stderr)|(?:/dev|/proc/self)/fd/(\d+)")


def is_stream(path: Path) -> bool:
    """Whether a path is a device, a pipe or an open file, which is written in place."""
    if _OPEN_FILE.fullmatch(path.as_posix()):
        return True
    # Unlike the methods of Path, these functions raise no errors.
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)


def make_parent(path: Path) -> None:
    """Create the folder in which a file is to be written; links are followed.

    Raises:
        FileError: it cannot be created, as where a file has its name.
    """
    with naming(path):
        try:
            followed(path).parent.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            files = (each for each in path.parents if os.path.exists(each) and not each.is_dir())
            raise FileError(
                f"{path}: cannot be written, since {next(files, path.parent)} is a file, not a "
                "folder; name another folder"
            ) from None


def _temporary(path: Path, folder: bool = False) -> tuple[Path, Path]:
    """Return where links lead, and a new name beside it; `folder`: whether to write a folder.

    Raises:
        FileError: what is there is of another kind, or must not be written.
    """
    target = followed(path)
    make_parent(path)
    with naming(path):
        if target.exists():
            if target.is_dir() != folder:
                raise FileError(f"{path}: is a {'file' if folder else 'folder'} already")
            if not os.access(target, os.W_OK):  # a rename would not mind
                raise FileError(f"{path}: cannot be written (Permission denied)")
    # A file name has at most 255 bytes.
    return target, target.with_name(f".{target.name[:40]}.{secrets.token_hex(8)}.tmp")


def _open_stream(path: Path) -> TextIO:
    """Open a device, a pipe or an open file for writing."""
    own = _OPEN_FILE.fullmatch(path.as_posix())
    # Windows has standard streams, too, but no such names.
    if os.path.exists(path) and stat.S_ISBLK(os.stat(path).st_mode):
        raise FileError(f"{path}: is a disk, not a file to write")
    if not own:
        return open(path, "a", encoding="utf-8", newline="\n")
    # Opened anew, a regular file would have a position of its own.
    sys.stdout.flush()
    number = ("stdin", "stdout", "stderr").index(own[1]) if own[1] else int(own[2])
    return open(os.dup(number), "w", encoding="utf-8", newline="\n")


@contextmanager
def replaced_when_done(paths: Sequence[Path]) -> Iterator[list[TextIO]]:
    """Open text files that get their names only if the block ends without an error.

    After an error or a kill, each file is either unchanged or complete. Missing folders are
    created. Links are followed. Devices and pipes, such as `/dev/stdout`, are written directly.

    Raises:
        FileError: a file cannot be written, or two are the same; if possible, before the block
            starts.
    """
    with ExitStack() as stack:
        stack.enter_context(ended_by_exception())
        files: list[TextIO] = []
        renamed: dict[Path, TextIO] = {}  # by target
        for path in paths:
            with naming(path):
                if is_stream(path):
                    files.append(_open_stream(path))
                else:
                    target, temporary = _temporary(path)
                    if target in renamed:
                        raise FileError(f"{path}: is to be written twice; name two files")
                    stack.callback(remove, temporary)
                    # Not `tempfile`, whose files only their owner can read.
                    opened = open(temporary, "x", encoding="utf-8", newline="\n")  # noqa: SIM115
                    files.append(opened)
                    renamed[target] = opened
                    if target.exists():
                        shutil.copymode(target, temporary)
            stack.callback(_discard, files[-1])
        try:
            yield files
            for file in files:
                file.flush()
                if file in renamed.values():
                    os.fsync(file.fileno())
                file.close()
        except OSError as error:
            if isinstance(error, BrokenPipeError) or error.filename is not None:
                raise  # of another file
            names = " or ".join(map(str, paths))
            raise FileError(f"{names}: cannot be written ({error.strerror or error})") from None
        for target, file in renamed.items():
            with naming(target):
                os.replace(file.name, target)
                _flush(target.parent)


def write_files(contents: Mapping[Path, str | bytes]) -> None:
    """Write several files: see `replaced_when_done`.

    Raises:
        FileError: a folder or file cannot be written; none of the files was changed, unless the
            last step, renaming, fails.
    """
    with replaced_when_done(list(contents)) as files:
        for file, content in zip(files, contents.values(), strict=True):
            file.buffer.write(content.encode() if isinstance(content, str) else content)


def json_text(content: Any) -> str:
    """Return an object as the text of a JSON file for people."""
    return json.dumps(finite(content), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def json_line(content: Any) -> str:
    """Return an object as a line of a JSON lines file."""
    return json.dumps(finite(content), ensure_ascii=False, allow_nan=False) + "\n"


def finite(content: Any) -> Any:
    """Return an object with None for numbers that are not finite, which JSON does not have."""
    if isinstance(content, float):
        return content if math.isfinite(content) else None
    if isinstance(content, Mapping):
        return {key: finite(value) for key, value in content.items()}
    return [*map(finite, content)] if isinstance(content, list | tuple) else content


def write_text(path: Path, text: str) -> None:
    """Write a text file: see `replaced_when_done`."""
    write_files({path: text})


def write_folder(folder: Path, write: Callable[[Path], object]) -> None:
    """Write a temporary folder, flush it to disk, and rename it to `folder`.

    After an error or a kill, `folder` is either unchanged or complete. Replacing it takes two
    renames; a kill between them leaves the old one as `.NAME.old`.

    Args:
        folder: what to write; it replaces only a folder.
        write: called with the temporary path, to create and fill it.

    Raises:
        FileError: it cannot be written.
    """
    target, temporary = _temporary(folder, folder=True)
    old = target.with_name(f".{target.name}.old")  # a folder cannot be renamed over another
    with ended_by_exception(), naming(folder):
        try:
            write(temporary)
            for path in [*temporary.rglob("*"), temporary]:
                _flush(path)
            if target.exists():
                remove(old)
                os.replace(target, old)
            os.replace(temporary, target)
        except BaseException:  # also an interrupt
            if old.exists() and not target.exists():
                os.replace(old, target)
            remove(temporary)
            raise
        remove(old)
        _flush(target.parent)


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Yield a new folder, which is removed after the block, also if SIGTERM or SIGHUP ends it."""
    with ended_by_exception(), TemporaryDirectory(prefix="onmt_entmax-") as name:
        yield Path(name)


@contextmanager
def ended_by_exception() -> Iterator[None]:
    """Turn SIGTERM and SIGHUP into SystemExit, so that temporary files are removed.

    The exit status is 128 plus the signal, as in a shell. Signals with a handler keep it.
    """

    def end(number: int, frame: FrameType | None) -> None:
        for each in numbers:  # often sent twice, which must not end the removal
            signal.signal(each, signal.SIG_IGN)
        raise SystemExit(128 + number)

    numbers = []
    if threading.current_thread() is threading.main_thread():
        numbers = [
            number
            for number in set(ending_signals()) - {signal.SIGINT}
            if signal.getsignal(number) is signal.SIG_DFL
        ]
    for number in numbers:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)


@contextmanager
def locked(folder: Path) -> Iterator[Callable[[], None]]:
    """Lock a folder, which is created if necessary, while the block runs.

    A killed process holds no lock, and a block that fails leaves no folder with nothing else.
    SIGTERM and SIGHUP raise SystemExit in the block, if they have no handler.

    Yields:
        A function that raises FileError if the folder was deleted or replaced meanwhile: then this
        process holds the lock of a file that no other one sees.

    Raises:
        FileError: another process holds the lock, or the folder cannot be created or written.
    """
    from filelock import FileLock, Timeout

    with ended_by_exception():
        with naming(folder):
            make_parent(folder / ".lock")
            try:
                lock = FileLock(folder / ".lock").acquire(timeout=0)
            except Timeout:
                raise FileError(
                    f"{folder}: another process works here; end it first, or choose another folder"
                ) from None
        with lock:
            own = _identity(folder / ".lock")

            def check() -> None:
                if own is None or _identity(folder / ".lock") != own:
                    raise FileError(
                        f"{folder}: was deleted or replaced while this process worked here, which "
                        "ends and writes nothing more"
                    )

            try:
                yield check
            except BaseException:
                # A link, the current folder, or open files on Windows.
                with suppress(OSError, FileError):
                    check()
                    if os.listdir(folder) == [".lock"]:  # nothing was written
                        (folder / ".lock").unlink()
                        folder.rmdir()
                raise


def _identity(path: Path) -> tuple[int, int] | None:
    """Return device and inode of a file, or None if there is none; an open one keeps its inode."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def refuse_overwriting(read: Iterable[Path | None], written: Iterable[Path | None]) -> None:
    """Refuse outputs that would replace an input, and the name that other programs give to stdout.

    Files are compared as the disk knows them: through links, and whatever the case of their names
    where that makes no difference. Devices and pipes may be both; None stands for a file that is
    not used.

    Raises:
        FileError: names the file.
    """
    sources = {followed(path) for path in read if path is not None and not is_stream(path)}
    identities = {_identity(path) for path in sources} - {None}
    for path in written:
        if path == Path("-"):
            raise FileError("-: the standard output is /dev/stdout here")
        if path is None or is_stream(path):
            continue
        if (target := followed(path)) in sources or _identity(target) in identities:
            raise FileError(f"{path}: is read, and would be overwritten; name another output")
        if target.name in _OF_MODEL and (target.parent / _OF_MODEL[0]).is_file():
            raise FileError(f"{path}: is a file of a model; name another output")


def remove(path: Path) -> None:
    """Remove a file or a folder, if possible."""
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _discard(file: TextIO) -> None:
    """Close a file; unwritten data is discarded."""
    with suppress(OSError):
        file.close()


def _flush(path: Path) -> None:
    """Flush a file or folder to disk, so that it survives a power cut.

    Windows opens no folders, and flushes only files that are open for writing: these stay as they
    are.
    """
    try:
        handle = os.open(path, os.O_RDONLY)
    except PermissionError:
        if path.is_dir():
            return
        raise
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno != errno.EBADF:
            raise
    finally:
        os.close(handle)
