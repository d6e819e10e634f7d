"""Locked folders: one process at a time writes to a run, and notices if its folder is moved."""

from __future__ import annotations

import fcntl
import os
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

from onmt_entmax.files import FileError, ended_by_exception, naming

_LOCK = ".lock"


class LockedError(FileError):
    """Another process works in a folder; the message names both."""


@dataclass(frozen=True)
class FolderLock:
    """The lock of a folder, which this process holds.

    It belongs to the open file: child processes that inherit the file hold the lock too, until the
    last of them ends. The file says who works in the folder. A file system without locks gives no
    protection.
    """

    folder: Path
    file: FileIO

    def name(self, process: int) -> None:
        """Write which process works in the folder, for those that are refused."""
        self.file.seek(0)
        self.file.truncate()
        self.file.write(f"process {process} on {platform.node()}".encode())

    def place(self) -> Path | None:
        """Return where the locked folder is now.

        This is `folder`, or another path if the folder was renamed; None if the folder or its lock
        file was deleted, or if this system does not tell where a renamed folder is.
        """
        if self._is(self.folder / _LOCK):
            return self.folder
        with suppress(OSError):
            path = _path_of(self.file.fileno())
            if self._is(path):
                return path.parent
        return None

    def _is(self, path: Path) -> bool:
        """Whether the lock file has this path."""
        try:
            return os.path.samestat(os.fstat(self.file.fileno()), os.lstat(path))
        except OSError:
            return False


@contextmanager
def locked(folder: Path) -> Iterator[FolderLock]:
    """Lock a folder, which is created if necessary.

    A block that raises and has written nothing to the folder leaves no trace: a new folder and a
    new lock file are removed. SIGTERM and SIGHUP raise SystemExit in the block, if they have no
    handler.

    Raises:
        LockedError: another process holds the lock.
        FileError: the folder cannot be created or written.
    """
    with ended_by_exception():
        missing = [path for path in (folder, *folder.parents) if not path.exists()]
        before = set(os.listdir(folder)) if folder.is_dir() else set()
        lock = _taken(folder)
        with lock.file:
            try:
                lock.name(os.getpid())
                yield lock
            except BaseException:
                unused = lock.place() == folder and set(os.listdir(folder)) == before | {_LOCK}
                if unused and _LOCK not in before:
                    (folder / _LOCK).unlink()
                    with suppress(OSError):  # another process may use one of them by now
                        for path in missing:
                            path.rmdir()
                raise


def _taken(folder: Path) -> FolderLock:
    """Create a folder if necessary, and take its lock."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    holder = ""
    # Retry: `is_locked` holds the lock for a moment, and so do readers of a dead process.
    for _ in range(10):
        with naming(folder):
            folder.mkdir(parents=True, exist_ok=True)
            try:
                handle = os.open(folder / _LOCK, flags, 0o666)
            except FileNotFoundError:  # the process that had created the folder has removed it
                continue
            lock = FolderLock(folder, FileIO(handle, "r+"))
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = lock.file.read(200).decode("utf-8", errors="replace")
            lock.file.close()
            time.sleep(0.05)
            continue
        except OSError:  # a file system without locks
            return lock
        if lock.place() == folder:
            return lock
        lock.file.close()  # its holder has removed the file; another may hold a new one
    who = holder if holder.isprintable() and holder else "another process"
    raise LockedError(f"{folder}: {who} works here; end it first, or choose another folder")


def _path_of(handle: int) -> Path:
    """Return the path of an open file, wherever it was renamed to.

    Raises:
        OSError: this system does not tell.
    """
    get_path = getattr(fcntl, "F_GETPATH", None)  # of macOS
    if get_path is None:
        return Path(os.readlink(f"/proc/self/fd/{handle}"))
    return Path(os.fsdecode(fcntl.fcntl(handle, get_path, bytes(1024)).rstrip(b"\0")))


def is_locked(folder: Path) -> bool:
    """Whether a process holds the lock of a folder."""
    try:
        # Opening a named pipe of this name must not wait for its other end.
        handle = os.open(folder / _LOCK, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with FileIO(handle) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        pass
    return False
