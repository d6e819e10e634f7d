"""A text file that is written in parts, and goes on after a kill where the last part ended.

Beside the file are, until it is complete,

    .NAME.DIGEST.partial        the parts so far
    .NAME.DIGEST.partial.json   the record: how long they are, how far they got, of which work
    .NAME.DIGEST.partial.lock   while a process writes

A part counts when the record has it; what a killed process wrote after its last record is cut off.

    parts = Continued(path, {"lines": len(lines)})
    with alone(parts):  # opens them, and closes them at the end
        for number in range(parts.progress.get("lines", 0), len(lines)):
            parts.write(f"{lines[number]}\n", {"lines": number + 1})
        parts.finish()
"""

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from onmt_entmax.files import (
    FileError,
    followed,
    json_line,
    make_parent,
    naming,
    read_object,
    write_text,
)

# Characters of a file's name in that of its parts.
_LONGEST = 40


class Continued:
    """The parts of a file.

    Args:
        path: the file; links are followed.
        work: all that the content depends on, as JSON has it. Parts of other work are dropped.

    Attributes:
        path: the file.
        partial: the file of the parts.
        progress: after `open`, what the last `write` recorded; empty if there are no parts of this
            work.
        dropped: after `open`, whether there were parts that cannot be continued: they are of other
            work, or their record is damaged.
    """

    def __init__(self, path: Path, work: Mapping[str, Any]) -> None:
        self.path = path
        self._target = followed(path)
        name = self._target.name
        # A name has at most 255 bytes; the digest tells long names apart.
        digest = hashlib.sha256(name.encode()).hexdigest()[:8]
        self.partial = self._target.with_name(f".{name[:_LONGEST]}.{digest}.partial")
        self._record = self.partial.with_name(f"{self.partial.name}.json")
        text = json.dumps(work, sort_keys=True, ensure_ascii=False)
        self._work = hashlib.sha256(text.encode()).hexdigest()
        self._file: BinaryIO | None = None
        self._length = 0  # bytes of the parts that are recorded
        self.progress: dict[str, Any] = {}
        self.dropped = False

    def _read_record(self) -> None:
        """Read how far an earlier process came, unless that cannot be continued."""
        self._length = 0
        self.progress = {}
        self.dropped = self._record.exists()  # unless all is well
        if not self.dropped:
            return
        try:
            record = read_object(self._record)
            size = self.partial.stat().st_size
        except (FileError, OSError):
            return
        length: Any = record.get("bytes")
        progress: Any = record.get("progress")
        is_whole = isinstance(length, int) and 0 <= length <= size and isinstance(progress, dict)
        if is_whole and record.get("work") == self._work:
            self._length = length
            self.progress = progress
            self.dropped = False

    def open(self) -> None:
        """Open the parts, without what was written after the last record.

        Only now is the record read: before `alone` has the lock, another process may change it.

        Raises:
            FileError: the file cannot be written.
        """
        make_parent(self._target)
        with naming(self._target):
            self._read_record()
            if self._target.is_dir():
                raise FileError(f"{self._target}: is a folder already")
            if self._target.exists() and not os.access(self._target, os.W_OK):
                raise FileError(f"{self._target}: cannot be written (Permission denied)")
            if not self._length:
                self._record.unlink(missing_ok=True)
            self._file = open(self.partial, "ab")  # noqa: SIM115
            self._file.truncate(self._length)

    def write(self, text: str, progress: Mapping[str, Any]) -> None:
        """Append a part, and record how far the work is.

        Args:
            text: the part.
            progress: what `self.progress` will be if this is the last record.

        Raises:
            FileError: the file cannot be written.
        """
        assert self._file is not None, "open it first"
        with naming(self._target):
            self._length += self._file.write(text.encode())
            self._file.flush()
            os.fsync(self._file.fileno())
        self.progress = dict(progress)
        record = {"work": self._work, "bytes": self._length, "progress": self.progress}
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


@contextmanager
def alone(parts: Continued) -> Iterator[None]:
    """Open the parts of a file, which no other process writes during the block.

    The lock file is deleted at the end, while it is locked. A process that opened it before gets
    the lock of a deleted file, which filelock from 3.29.5 on refuses; and filelock itself deletes
    no file there, which might be the next process's. After the deletion this process writes
    nothing. Windows deletes no open file; there filelock does so when it has unlocked it.

    Raises:
        FileError: another process writes the file, or it cannot be written.
    """
    from filelock import FileLock, Timeout

    path = parts.partial.with_name(f"{parts.partial.name}.lock")
    make_parent(parts.path)
    with naming(parts.path):
        try:
            lock = FileLock(path).acquire(timeout=0)
        except Timeout:
            raise FileError(
                f"{parts.path}: another process writes here; end it first, or name another output"
            ) from None
    with lock:
        try:
            parts.open()
            yield
        finally:
            parts.close()
            with suppress(OSError):
                path.unlink()
