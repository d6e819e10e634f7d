"""The content of folders in tests of files, and files that cannot be read."""

import os
from pathlib import Path


def contents(folder: Path) -> set[str]:
    """Return the paths of all files and folders below a folder, relative to it."""
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}


def make_unreadable_files(folder: Path) -> None:
    """Make files that `read_bytes` refuses if they may have ten bytes, whoever the user is.

    They are `large`, `pipe`, `folder`, `loop` (a link to itself) and `device`.
    """
    (folder / "large").write_bytes(b"x" * 11)
    os.mkfifo(folder / "pipe")
    (folder / "folder").mkdir()
    (folder / "loop").symlink_to("loop")
    (folder / "device").symlink_to("/dev/zero")
