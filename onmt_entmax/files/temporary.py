"""Temporary folders, and temporary names for files that replace others once they are complete."""

import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from onmt_entmax.files.paths import FileError, followed, naming
from onmt_entmax.files.signals import ended_by_exception

# Characters of a file's name in a temporary one; a name has at most 255 bytes.
_LONGEST = 40


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Yield a new folder, which is removed after the block, also if SIGTERM or SIGHUP ends it."""
    with ended_by_exception(), TemporaryDirectory(prefix="onmt_entmax-") as name:
        yield Path(name)


def make_parent(path: Path) -> None:
    """Create the folder in which a file is to be written; links are followed.

    Raises:
        FileError: it cannot be created, for example because a file has its name.
    """
    with naming(path):
        try:
            followed(path).parent.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            files = [
                parent for parent in path.parents if os.path.exists(parent) and not parent.is_dir()
            ]
            file = files[0] if files else path.parent
            raise FileError(
                f"{path}: cannot be written, since {file} is a file, not a folder; name another "
                "folder"
            ) from None


class Replacement(NamedTuple):
    """What is to be written, and the temporary name under which it is written."""

    target: Path
    """Path to which links lead; of a folder that is itself a link, the path of the link."""
    temporary: Path
    """New name in the same folder."""


def temporary_beside(path: Path, *, folder: bool) -> Replacement:
    """Return a temporary name beside a file or folder that is to be written.

    The parent folder is created if it is missing.

    Args:
        path: what is to be written.
        folder: whether it is a folder, and not a file.

    Raises:
        FileError: a file is to be written, but a folder has its name, or the other way round; or
            the user may not write what is there.
    """
    target = followed(path.parent) / path.name if folder else followed(path)
    make_parent(path)
    with naming(path):
        if target.exists():
            if target.is_dir() != folder:
                raise FileError(f"{path}: is a {'file' if folder else 'folder'} already")
            if not os.access(target, os.W_OK):  # renaming would replace it all the same
                raise FileError(f"{path}: cannot be written (Permission denied)")
    name = f".{target.name[:_LONGEST]}.{secrets.token_hex(8)}.tmp"
    return Replacement(target, target.with_name(name))


def remove(path: Path) -> None:
    """Remove a file or a folder, if possible."""
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def flush(path: Path) -> None:
    """Flush a file or folder to disk, so that it survives a power cut.

    On Windows nothing is flushed: it opens no folders, and flushes only files that are open for
    writing.
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
