"""Files in archives: zip, or tar with any compression."""

from __future__ import annotations

import io
import lzma
import tarfile
import zipfile
import zlib
from functools import partial

from onmt_entmax.errors import UserError
from tools.papers.corpus_files import Get


def members(name: str, content: bytes, inside: str) -> Get:
    """Return a function that reads the files in a folder of an archive.

    Args:
        name: name of the archive.
        content: content of the archive.
        inside: the folder in it.
    """
    return partial(_member, name, content, inside)


def _member(name: str, content: bytes, inside: str, member: str) -> bytes:
    """Return the content of a file in a folder of an archive; see `members`.

    Raises:
        UserError: the archive is damaged, or has no such file.
    """
    path = f"{inside}/{member}".lstrip("/")
    try:
        if name.endswith(".zip"):
            with zipfile.ZipFile(io.BytesIO(content)) as zipped:
                return zipped.read(path)
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            file = archive.extractfile(path)
            if file is None:
                raise KeyError(f"{path} is no file")
            return file.read()
    except (
        zipfile.BadZipFile, tarfile.TarError, lzma.LZMAError, zlib.error, OSError, EOFError,
        KeyError,
    ) as error:  # fmt: skip
        raise UserError(f"{name}: is not the archive that was expected: {error}") from None
