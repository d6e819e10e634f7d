"""Folders in which one process works at a time."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from onmt_entmax.files.paths import FileError, identity, naming
from onmt_entmax.files.signals import ended_by_exception
from onmt_entmax.files.temporary import make_parent

_LOCK = ".lock"  # file of a folder


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
    from filelock import FileLock, Timeout  # which only commands need

    path = folder / _LOCK
    with ended_by_exception():
        with naming(folder):
            make_parent(path)
            try:
                lock = FileLock(path).acquire(timeout=0)
            except Timeout:
                raise FileError(
                    f"{folder}: another process works here; end it first, or choose another folder"
                ) from None
        with lock:
            check = partial(_check_same, folder, identity(path))
            try:
                yield check
            except BaseException:  # also an interrupt
                _remove_if_unused(folder, check)
                raise


def _check_same(folder: Path, lock: tuple[int, int] | None) -> None:
    """Check that the lock of a folder is still the file that this process has locked.

    Raises:
        FileError: it is another one, or gone.
    """
    if lock is None or identity(folder / _LOCK) != lock:
        raise FileError(
            f"{folder}: was deleted or replaced while this process worked here, which "
            "ends and writes nothing more"
        )


def _remove_if_unused(folder: Path, check: Callable[[], None]) -> None:
    """Remove a folder in which nothing but its lock was written, if possible.

    Args:
        folder: folder that this process has locked.
        check: fails if it is not that folder any more.
    """
    # Impossible for a link, the current folder, or open files on Windows.
    with suppress(OSError, FileError):
        check()
        if os.listdir(folder) == [_LOCK]:
            (folder / _LOCK).unlink()
            folder.rmdir()
