"""Digests of files, which tell whether results are out of date."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path


def digest(path: Path) -> str | None:
    """Return a digest of the content of a file; None if there is no file."""
    if not path.is_file():
        return None
    status = path.stat()
    return _digest(path, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=1000)  # the runs of a matrix share texts: read each of them once
def _digest(path: Path, time: int, size: int) -> str:
    """Return a digest of a file; time and size tell its versions in the cache apart."""
    return hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest()
