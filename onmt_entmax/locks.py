"""Folders in which one process at a time may work."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from onmt_entmax.files import FileError

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
