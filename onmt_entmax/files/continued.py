"""Write a text file in parts; after a kill, the next process resumes behind the last part.

    parts = Continued(path, resume_key={"table": digest})
    with parts.opened():
        first = parts.progress.get("rows", 0)  # rows that an earlier process wrote
        for row in range(first, len(rows)):
            parts.write(text_of(rows[row]), progress={"rows": row + 1})
        parts.finish()

Until the file is complete, these are beside it:

    .NAME.DIGEST.partial        the parts so far
    .NAME.DIGEST.partial.json   the record: their length, the progress, and a hash of the resume key
    .NAME.DIGEST.partial.lock   while a process writes

The record is written after each part. What a killed process wrote after its last record is cut off.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from onmt_entmax.files import (
    FileError,
    followed,
    json_line,
    make_parent,
    naming,
    read_object,
    write_text,
)

_LONGEST = 40  # characters of the file's name in the names of its parts


class _Resumed(NamedTuple):
    """What an earlier process recorded with its last part."""

    length: int  # bytes of its parts
    progress: dict[str, Any]


class Continued:
    """A text file that is written in parts, inside `with parts.opened()`.

    Args:
        path: the file; links are followed.
        resume_key: everything on which the content depends, as an object for JSON. Parts that were
            written with another key are dropped.

    Attributes:
        path: the file.
        partial: the file of the parts.
        progress: what the last `write` of this process or an earlier one recorded; empty before
            the file is opened, and if there are no parts with this key.
        dropped: whether there were parts that cannot be resumed, since they were written with
            another key, or their record is damaged.
    """

    def __init__(self, path: Path, resume_key: Mapping[str, Any]) -> None:
        self.path = path
        self._target = followed(path)
        name = self._target.name
        # A name has at most 255 bytes; the digest tells long names apart.
        digest = hashlib.sha256(name.encode()).hexdigest()[:8]
        self.partial = self._target.with_name(f".{name[:_LONGEST]}.{digest}.partial")
        self._record = self.partial.with_name(f"{self.partial.name}.json")
        text = json.dumps(resume_key, sort_keys=True, ensure_ascii=False)
        self._hashed_key = hashlib.sha256(text.encode()).hexdigest()
        self._file: BinaryIO | None = None
        self._length = 0  # bytes of the parts that are recorded
        self.progress: dict[str, Any] = {}
        self.dropped = False

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Open the file for the block, in which no other process may write it.

        A lock file beside the parts shows that they are being written. It is deleted at the end, so
        that a complete file leaves nothing behind.

        Raises:
            FileError: another process writes the file, or it cannot be written.
        """
        from filelock import FileLock, Timeout

        path = self.partial.with_name(f"{self.partial.name}.lock")
        make_parent(self.path)
        with naming(self.path):
            try:
                lock = FileLock(path).acquire(timeout=0)
            except Timeout:
                raise FileError(
                    f"{self.path}: another process writes here; end it first, or name another "
                    "output"
                ) from None
        with lock:
            try:
                self._open()
                yield
            finally:
                self.close()
                # Deleted while it is still locked: later, it may be the lock of the next process. A
                # process that has opened the file already would lock a deleted file, which filelock
                # refuses from 3.29.5 on. Windows cannot delete an open file; there, filelock
                # deletes it after unlocking.
                with suppress(OSError):
                    path.unlink()

    def _open(self) -> None:
        """Open the parts, and cut off what was written after the last record.

        The lock must be held, since another process may write a record without it.

        Raises:
            FileError: the file cannot be written.
        """
        make_parent(self._target)
        with naming(self._target):
            has_record = self._record.exists()
            resumed = self._read_record() if has_record else None
            self.dropped = has_record and resumed is None
            self._length, self.progress = resumed or _Resumed(0, {})
            if self._target.is_dir():
                raise FileError(f"{self._target}: is a folder already")
            if self._target.exists() and not os.access(self._target, os.W_OK):
                raise FileError(f"{self._target}: cannot be written (Permission denied)")
            if not self._length:
                self._record.unlink(missing_ok=True)
            self._file = open(self.partial, "ab")  # noqa: SIM115
            self._file.truncate(self._length)

    def _read_record(self) -> _Resumed | None:
        """Return how far an earlier process came; None if that cannot be resumed."""
        try:
            record = read_object(self._record)
            size = self.partial.stat().st_size
        except (FileError, OSError):
            return None
        length: Any = record.get("bytes")
        progress: Any = record.get("progress")
        is_whole = isinstance(length, int) and 0 <= length <= size and isinstance(progress, dict)
        if not is_whole or record.get("work") != self._hashed_key:
            return None
        return _Resumed(length, progress)

    def write(self, text: str, progress: Mapping[str, Any]) -> None:
        """Append a part, and record the progress.

        Args:
            text: the part.
            progress: how far the work is with this part; the next process finds it in
                `self.progress` if this is the last record.

        Raises:
            FileError: the file cannot be written.
        """
        assert self._file is not None, "the file is not opened"
        with naming(self._target):
            self._length += self._file.write(text.encode())
            self._file.flush()
            os.fsync(self._file.fileno())
        self.progress = dict(progress)
        # `work` is the hash of the resume key, under the name that earlier versions gave it.
        record = {"work": self._hashed_key, "bytes": self._length, "progress": self.progress}
        write_text(self._record, json_line(record))

    def finish(self) -> None:
        """Give the file its name; nothing more can be written.

        Raises:
            FileError: it cannot be renamed.
        """
        with naming(self._target):
            if self._target.exists():
                shutil.copymode(self._target, self.partial)
            self.close()
            os.replace(self.partial, self._target)
            self._record.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the file; the parts stay."""
        if self._file is not None:
            self._file.close()
            self._file = None
