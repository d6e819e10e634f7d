"""Write and check the list of checksums of a model folder, which `sha256sum -c` also reads."""

import hashlib
from pathlib import Path

from onmt_entmax.files import FileError, followed, naming, read_bytes, write_text

LIST_NAME = "SHA256SUMS"
_MOST_LIST = 1 << 20  # bytes of a list
_BLOCK = 1 << 20  # bytes that are read at a time
_CHANGED = "its content is not what was written (checksum differs)"


def check_inside(folder: Path, name: str) -> None:
    """Check that a file of a model folder lies in this folder.

    A link in a stranger's folder may lead to a private file of the user. `export` would copy this
    file into the folder that the user gives away.

    Raises:
        FileError: if a symbolic link leads out of the folder.
    """
    file = followed(folder / name)
    if followed(folder) not in file.parents:
        raise FileError(
            f"{folder / name}: is a link out of the folder, to {file}; put a copy of the file there"
        )


def is_listed(folder: Path) -> bool:
    """Return whether a folder has a list; older models have none."""
    return (folder / LIST_NAME).exists()


def write_list(folder: Path) -> None:
    """Write the list of the files that a folder holds now.

    Raises:
        FileError: a file cannot be read, or the list cannot be written.
    """
    lines = (f"{_digest(folder / name)}  {name}\n" for name in _files_in(folder))
    write_text(folder / LIST_NAME, "".join(lines))


def _files_in(folder: Path) -> list[str]:
    """Return the names of all files in a folder and below it, the list itself left out."""
    names = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()]
    return sorted(name for name in names if name != LIST_NAME)


def _read_list(folder: Path) -> dict[str, str]:
    """Return the checksums of the list, by name.

    Raises:
        FileError: the list cannot be read, or is a link out of the folder.
    """
    check_inside(folder, LIST_NAME)
    content = read_bytes(folder / LIST_NAME, _MOST_LIST)
    lines = content.decode("utf-8", errors="replace").splitlines()
    return {name: digest for digest, _, name in (line.partition("  ") for line in lines)}


def _digest(path: Path) -> str:
    """Return the checksum of a file of any size.

    Raises:
        FileError: it is no regular file, or cannot be read.
    """
    if path.exists() and not path.is_file():
        raise FileError(f"{path}: is not a regular file")
    digest = hashlib.sha256()
    with naming(path, "read"), open(path, "rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def differences(folder: Path) -> list[str]:
    """Return a line for each file that differs from the list: changed, missing or not listed.

    Raises:
        FileError: there is no list, or a file is not regular or cannot be read.
    """
    listed = _read_list(folder)
    present = _files_in(folder)
    lines = []
    for name in sorted({*present, *(name for name in listed if name)}):
        if name not in present:
            lines.append(f"{folder / name}: is missing")
        elif name not in listed:
            lines.append(f"{folder / name}: was not there when the folder was written")
        else:
            lines += _difference(folder, name, listed[name])
    return lines


def _difference(folder: Path, name: str, checksum: str) -> list[str]:
    """Return a line if a file has another checksum, or is a link out of the folder."""
    try:
        check_inside(folder, name)
    except FileError as error:
        return [str(error)]
    if _digest(folder / name) != checksum:
        return [f"{folder / name}: {_CHANGED}"]
    return []


def read_checked(folder: Path, name: str, at_most: int) -> bytes:
    """Return the content of a file of a folder with checksums.

    Args:
        folder: the folder. If it has no list, nothing is compared: older models have none.
        name: name of the file, relative to the folder, with `/`.
        at_most: largest size in bytes.

    Raises:
        FileError: if the file cannot be read, is larger, is not listed, has another checksum, or is
            a link out of the folder.
    """
    check_inside(folder, name)
    content = read_bytes(folder / name, at_most)
    if not is_listed(folder):
        return content
    if hashlib.sha256(content).hexdigest() != _read_list(folder).get(name):
        raise FileError(
            f"{folder / name}: {_CHANGED}; restore it, or after a change by hand renew its line in "
            f"{LIST_NAME} with sha256sum"
        )
    return content
