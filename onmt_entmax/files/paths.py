"""What a path stands for (a link, a device, an open file), and errors that name it."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from onmt_entmax.errors import UserError

# Names of open files of this process. One may be a regular file, as in
# `-output /dev/stdout >> all`, which must append.
OPEN_FILE = re.compile(r"/dev/(stdin|stdout|stderr)|(?:/dev|/proc/self)/fd/(\d+)")

_STREAMS = ("stdin", "stdout", "stderr")  # by their numbers


class FileError(UserError):
    """A file that cannot be read or written; the message names it."""


@contextmanager
def naming(path: Path, failed: str = "written") -> Iterator[None]:
    """Turn the system's errors in a block into a FileError that names the file.

    The error of a closed pipe is left to `cli.ending`: the reader closed it on purpose.

    Args:
        path: the file.
        failed: what the block does with it, for the message: "read" or "written".

    Raises:
        FileError: if the block raised an OSError, or the name has a null byte.
    """
    if "\0" in str(path):
        raise FileError(f"{str(path)!a}: a null byte, which no file name has")
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        reason = error.strerror or str(error)
        if str(path) == "-":
            reason += ", and the standard input is not read here"
        raise FileError(f"{path}: cannot be {failed} ({reason})") from None


def followed(path: Path) -> Path:
    """Return the absolute path to which links lead.

    If links form a loop, it is a path in the loop; `Path.resolve` would raise RuntimeError.
    """
    with naming(path, "read"):
        return Path(os.path.realpath(path))


def no_such_file(path: str | Path) -> str:
    """Return a message that says why a path is not a file."""
    if os.path.isdir(path):
        return f"{path} is a folder; name a file"
    if str(path) == "-":
        return "- is no file, and the standard input cannot be read more than once; name a file"
    if os.path.exists(path):
        return f"{path} is a pipe or a device, but is read more than once; name a file"
    searched = "" if os.path.isabs(path) else f" (searched in {Path.cwd()})"
    return f"no such file: {path}{searched}"


def is_stream(path: Path) -> bool:
    """Return whether a path is a device, a pipe or an open file, which is written in place."""
    if OPEN_FILE.fullmatch(path.as_posix()):
        return True
    # Unlike the methods of Path, these functions raise no errors.
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)


def refuse_stream(path: Path) -> None:
    """Refuse a pipe or a device as an input that is read more than once.

    Raises:
        FileError: names it.
    """
    if is_stream(path):
        raise FileError(
            f"{path}: is a pipe or a device, but is read more than once; write a file first"
        )


def descriptor(path: Path) -> int | None:
    """Return the number of the open file that a path names, 1 for `/dev/stdout`; else None."""
    open_file = OPEN_FILE.fullmatch(path.as_posix())
    if open_file is None:
        return None
    stream, number = open_file.groups()
    return int(number) if stream is None else _STREAMS.index(stream)


def identity(path: Path) -> tuple[int, int] | None:
    """Return device and inode of a file, which tell it from all others; None if there is none."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino
