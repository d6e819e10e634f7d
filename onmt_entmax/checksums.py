"""The list of checksums of a model folder: written last, checked whenever a file is read.

The list is a file `SHA256SUMS` as `sha256sum -c` reads it. Its last line, a comment, is the
checksum of the lines above it, so that a damaged list is noticed as well.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path

from onmt_entmax.files import FileError, naming, read_bytes, write_text

LIST_NAME = "SHA256SUMS"
_LINE = re.compile(r"([0-9a-f]{64})  (\S.*)")
_LAST = "# of the lines above: "
_LARGEST_LIST = 2**20
_BLOCK = 2**20
_CHANGED = "its content is not what was written (checksum differs)"


def digests(folder: Path) -> dict[str, str]:
    """Return the checksums of the files that a folder holds now, by name.

    Raises:
        FileError: a file cannot be read, or is none.
    """
    return {name: _digest(folder / name) for name in _files_in(folder)}


def write_list(folder: Path, sums: Mapping[str, str] | None = None) -> None:
    """Write the list of a folder.

    Args:
        folder: its old list is replaced.
        sums: checksums by name; those of the files it holds now if None.

    Raises:
        FileError: a file cannot be read, or the list cannot be written.
    """
    write_text(folder / LIST_NAME, _text(digests(folder) if sums is None else sums))


def _files_in(folder: Path) -> list[str]:
    """Return the names of all files in a folder and below it, the list itself left out."""
    paths = [path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir()]
    return sorted(
        path.relative_to(folder).as_posix() for path in paths if path != folder / LIST_NAME
    )


def differences(folder: Path) -> list[str]:
    """Return a line for each file that is not as listed, missing, or not listed.

    Raises:
        FileError: there is no list, or it is damaged.
    """
    sums = read_list(folder)
    if sums is None:
        raise FileError(f"{folder / LIST_NAME}: is missing")
    there, found = _files_in(folder), []
    for name in sorted({*sums, *there}):
        if name not in there:
            found.append(f"{folder / name}: is missing")
        elif name not in sums:
            found.append(f"{folder / name}: was not there when the folder was written")
        else:
            try:
                same = _digest(folder / name) == sums[name]
            except FileError as error:
                found.append(str(error))
                continue
            if not same:
                found.append(f"{folder / name}: {_CHANGED}")
    return found


def read_list(folder: Path) -> dict[str, str] | None:
    """Return the checksums by name; None if the folder has no list.

    Raises:
        FileError: the list cannot be read, or is damaged.
    """
    path = folder / LIST_NAME
    if not path.exists() and not path.is_symlink():
        return None
    text = read_bytes(path, _LARGEST_LIST).decode("utf-8", errors="replace")
    lines = [_LINE.fullmatch(line) for line in text.split("\n")]
    sums = {line[2]: line[1] for line in lines if line is not None}
    if text != _text(sums):  # a single flipped bit changes one of the two
        raise FileError(f"{path}: damaged; {_remedy(folder)}")
    return sums


class CheckedFolder:
    """The files of a model folder, read whole and checked against the list.

    Args:
        path: the folder.
        sums: the checksums to check against, in place of the list.

    Attributes:
        path: the folder.
        listed: whether there is a list; without one, nothing is checked.

    Raises:
        FileError: the list cannot be read, or is damaged.
    """

    def __init__(self, path: Path, sums: Mapping[str, str] | None = None) -> None:
        self.path = path
        self._sums = read_list(path) if sums is None else sums
        self.listed = self._sums is not None

    def read(self, name: str, at_most: int) -> bytes:
        """Return the content of a file.

        Args:
            name: relative to the folder, with `/`.
            at_most: largest size in bytes.

        Raises:
            FileError: it cannot be read, is larger, or its checksum differs.
        """
        path = self.path / name
        content = read_bytes(path, at_most)
        if self._sums is not None:
            if name not in self._sums:
                raise FileError(f"{path}: is not listed in {LIST_NAME}; {_remedy(self.path)}")
            if hashlib.sha256(content).hexdigest() != self._sums[name]:
                raise FileError(f"{path}: {_CHANGED}; {_remedy(self.path)}")
        return content


def _remedy(folder: Path) -> str:
    return f"restore it, or accept a change made by hand with onmt-entmax verify --accept {folder}"


def _digest(path: Path) -> str:
    """Return the checksum of a file of any size."""
    digest = hashlib.sha256()
    if path.exists() and not path.is_file():
        raise FileError(f"{path}: is not a regular file")
    with naming(path, "read"), open(path, "rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _text(sums: Mapping[str, str]) -> str:
    """Return the text of a list."""
    lines = "".join(f"{digest}  {name}\n" for name, digest in sums.items())
    return f"{lines}{_LAST}{hashlib.sha256(lines.encode()).hexdigest()}\n"
