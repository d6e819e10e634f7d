"""Archives of a model whose files were changed."""

import io
import zipfile
from collections.abc import Callable
from pathlib import Path

NAME = "model"  # of the folder in an archive

Files = dict[str, bytes]
"""The contents of the files of an archive, by their paths in it."""

Change = Callable[[Files], object]
"""Changes the files of an archive, in place."""


def repack(archive: Path, change: Change) -> bytes:
    """Return the content of an archive with its files changed."""
    with zipfile.ZipFile(archive) as file:
        files = {name: file.read(name) for name in file.namelist()}
    change(files)
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in files.items():
            file.writestr(name, data)
    return content.getvalue()


def adding(name: str) -> Change:
    """Return a change that adds a file of one byte, or replaces a file by it."""
    return lambda files: files.update({name: b"x"})


def leaving_out(name: str) -> Change:
    """Return a change that leaves out a file."""
    return lambda files: files.pop(name)
