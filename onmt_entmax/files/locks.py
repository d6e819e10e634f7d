"""Lock a folder, so that only one process at a time works in it."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from onmt_entmax.files.paths import FileError, identity, naming
from onmt_entmax.files.signals import ended_by_exception
from onmt_entmax.files.temporary import make_parent

_LOCK = ".lock"  # the locked file in the folder


@contextmanager
def locked(folder: Path) -> Iterator[Callable[[], None]]:
    """Lock a folder, which is created if necessary, while the block runs.

    The lock ends with its process, even if that is killed. If the block fails and the folder holds
    nothing but the lock, the folder is removed. SIGTERM and SIGHUP raise SystemExit in the block,
    so that this happens then, too, unless they have a handler.

    Yields:
        A function that raises FileError if the folder was deleted or replaced since it was locked.
        Call it before writing: this process would still hold the lock of the deleted file, while
        another process may have locked the new folder.

    Raises:
        FileError: if another process holds the lock, or the folder cannot be created or written.
    """
    from filelock import FileLock, Timeout  # late, since only some commands need the library

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

    Args:
        folder: the folder.
        lock: identity of the locked file; None if it was deleted at once.

    Raises:
        FileError: if it is another file, or there is none.
    """
    if lock is None or identity(folder / _LOCK) != lock:
        raise FileError(
            f"{folder}: was deleted or replaced while this process worked here, which "
            "ends and writes nothing more"
        )


def _remove_if_unused(folder: Path, check: Callable[[], None]) -> None:
    """Remove a folder that holds nothing but its lock, if possible.

    Args:
        folder: the folder that this process has locked.
        check: raises FileError if another folder stands in its place.
    """
    # Links, the current folder and, on Windows, folders with an open file cannot be removed.
    with suppress(OSError, FileError):
        check()
        if os.listdir(folder) == [_LOCK]:
            (folder / _LOCK).unlink()
            folder.rmdir()
