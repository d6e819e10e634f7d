"""Released models: where the pretrained one is, and archives of model folders.

An archive is a zip file of one model folder with its checksums, such as
`python -m zipfile -c NAME.zip NAME` makes of a folder that `onmt-entmax export` wrote.
"""

from __future__ import annotations

import io
import lzma
import os
import re
import site
import stat
import sysconfig
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from onmt_entmax.checksums import LIST_NAME, differences
from onmt_entmax.errors import UserError, printable
from onmt_entmax.files import FileError, read_bytes, write_files, write_folder

PRETRAINED = "inflection-86"
_CHECKOUT = "data/models"  # place of the model in a checkout
LARGEST = 1 << 30  # bytes of an archive, and of what it holds
_MOST_FILES = 64
_LARGEST_DIRECTORY = 1 << 16  # bytes of an archive's list of its files
_NAME = re.compile(r"([A-Za-z0-9][\w.-]{0,99})/([A-Za-z0-9][\w.-]{0,99})", re.ASCII)
_END, _END64 = b"PK\x05\x06", b"PK\x06\x07"


class ReleaseError(UserError):
    """A model that is not here, or an archive that cannot be used."""


def cache_folder() -> Path:
    """Return the folder of fetched models, by the XDG base directory specification."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    cache = given if os.path.isabs(given) else os.path.expanduser("~/.cache")
    return Path(cache, "onmt_entmax", "models")


def pretrained() -> Path:
    """Return the folder of the pretrained model: a checkout's, the wheel's, or the fetched one.

    Raises:
        ReleaseError: no folder has it; says what to do.
    """
    checkout = Path(__file__).resolve().parents[1]
    roots = (sysconfig.get_path("data"), site.getuserbase())
    installed = [Path(root, "share", "onmt_entmax", "models") for root in roots]
    for folder in (checkout / _CHECKOUT, *installed, cache_folder()):
        if (folder / PRETRAINED).is_dir():
            return folder / PRETRAINED
    raise ReleaseError(
        f"{installed[0] / PRETRAINED}: the pretrained model is missing, though the wheel has it; "
        "reinstall the package, or name another model (`inflect --model PATH`, `serve PATH`)"
    )


@contextmanager
def model_folder(path: Path) -> Iterator[Path]:
    """Yield the folder of a model; an archive is unpacked while the block runs.

    Raises:
        FileError: the archive cannot be read.
        ReleaseError: see `unpack`.
    """
    if path.suffix != ".zip" or path.is_dir():
        yield path
        return
    content = read_bytes(path, LARGEST)
    with TemporaryDirectory(prefix="onmt_entmax-") as place:
        yield unpack(content, str(path), Path(place))


def unpack(content: bytes, name: str, into: Path) -> Path:
    """Write the model folder of an archive, whole or not at all, and return it.

    Args:
        content: of the archive.
        name: of the archive, for errors.
        into: folder of the new folder, which replaces one of its name.

    Raises:
        ReleaseError: it is not an archive of one model folder, is damaged or too large, or a file
            differs from its checksum.
        FileError: the folder cannot be written.
    """
    with reading_zip(name):
        if _directory_size(content) > _LARGEST_DIRECTORY:
            raise ReleaseError(f"{name}: has too many files for an archive of a model")
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entries = [entry for entry in archive.infolist() if not entry.is_dir()]
            folder = into / _checked_name(entries, name)
            files = {entry.filename.split("/")[1]: archive.read(entry) for entry in entries}

    def write(temporary: Path) -> None:
        write_files({temporary / file: data for file, data in files.items()})
        try:
            found = differences(temporary)
        except FileError:
            raise ReleaseError(f"{name}: its {LIST_NAME} is damaged") from None
        for line in found:
            raise ReleaseError(f"{name}: {line.removeprefix(f'{temporary}/')}")

    write_folder(folder, write)
    return folder


@contextmanager
def reading_zip(name: str) -> Iterator[None]:
    """Raise what `zipfile` raises for a damaged archive as a ReleaseError.

    It documents BadZipFile alone, but places and names that make no sense raise ValueError, and
    each compression has errors of its own: that of bz2 is an OSError without a number.

    Args:
        name: of the archive.
    """
    try:
        yield
    except (
        zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, RuntimeError, ValueError
    ) as error:  # fmt: skip
        if isinstance(error, UserError) or getattr(error, "errno", None) is not None:
            raise
        raise ReleaseError(f"{name}: not a zip archive, or damaged ({error})") from None


def _directory_size(content: bytes) -> int:
    """Return the size of an archive's list of files, which `ZipFile` reads without a limit.

    Raises:
        BadZipFile: it is no archive, or one for more than 4 GiB.
    """
    end = content.rfind(_END)
    if end < 0 or content[max(0, end - 20) : end].startswith(_END64):
        raise zipfile.BadZipFile("no end of its list of files")
    return int.from_bytes(content[end + 12 : end + 16], "little")


def _checked_name(entries: list[zipfile.ZipInfo], name: str) -> str:
    """Return the name of the one folder that the entries of an archive are in.

    Raises:
        ReleaseError: there is another number of folders or an unsafe name, a link, a file twice, no
            list of checksums, or too much.
    """
    found: dict[str, set[str]] = {}
    for entry in entries:
        match = _NAME.fullmatch(entry.filename)
        if match is None or stat.S_ISLNK(entry.external_attr >> 16):
            raise ReleaseError(
                f"{name}: {printable(entry.filename)}: an archive of a model has files in one "
                "folder, and nothing else"
            )
        if match[2] in found.setdefault(match[1], set()):
            raise ReleaseError(f"{name}: {entry.filename} is in it twice")
        found[match[1]].add(match[2])
    if len(found) != 1 or LIST_NAME not in (files := next(iter(found.values()))):
        raise ReleaseError(f"{name}: not an archive of one model folder with its {LIST_NAME}")
    if len(files) > _MOST_FILES or sum(entry.file_size for entry in entries) > LARGEST:
        raise ReleaseError(f"{name}: too large: more than {_MOST_FILES} files or {LARGEST:,} bytes")
    return next(iter(found))
