"""Locked folders: one process at a time writes to a run."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from onmt_entmax.files import FileError, ended_by_exception, naming


class LockedError(FileError):
    """Another process works in a folder; the message names it."""


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock a folder, which is created if necessary, while the block runs.

    A killed process holds no lock, and a block that fails leaves no folder with nothing else.
    SIGTERM and SIGHUP raise SystemExit in the block, if they have no handler.

    Raises:
        LockedError: another process holds the lock.
        FileError: the folder cannot be created or written.
    """
    with ended_by_exception():
        with naming(folder):
            folder.mkdir(parents=True, exist_ok=True)
            try:
                lock = FileLock(folder / ".lock").acquire(timeout=0)
            except Timeout:
                raise LockedError(
                    f"{folder}: another process works here; end it first, or choose another folder"
                ) from None
        with lock:
            try:
                yield
            except BaseException:
                if os.listdir(folder) == [".lock"]:  # nothing was written
                    shutil.rmtree(folder)
                raise
