"""Folders for tests of files: what they hold, and files that nobody can read."""

import os
from pathlib import Path


def names(folder: Path) -> set[str]:
    """Return the paths of all that a folder holds, relative to it."""
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}


def make_unreadable_files(folder: Path) -> None:
    """Make files of which none can be read as a regular file of ten bytes, for any user."""
    (folder / "large").write_bytes(b"x" * 11)
    os.mkfifo(folder / "pipe")
    (folder / "folder").mkdir()
    (folder / "loop").symlink_to("loop")
    (folder / "device").symlink_to("/dev/zero")
