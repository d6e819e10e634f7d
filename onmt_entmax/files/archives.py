"""Archives of model folders: a zip file of one folder with its checksums.

`fetch-model` unpacks them. `python -m zipfile -c NAME.zip NAME` makes one of a folder that
`onmt-entmax export` wrote.
"""

import io
import shutil
import zipfile
from functools import partial
from pathlib import Path

from onmt_entmax.errors import UserError
from onmt_entmax.files import temporary_folder, write_folder
from onmt_entmax.files.checksums import LIST_NAME, differences, is_listed

# Larger ones are refused before anything is unpacked: a small archive may hold a full disk.
MOST_BYTES = 1 << 30  # of an archive, and of what it holds
_MOST_FILES = 1000


def unpack(content: bytes, name: str, into: Path) -> Path:
    """Write the model folder of an archive, whole or not at all, and return it.

    Args:
        content: bytes of the archive.
        name: name of the archive, for errors.
        into: folder for the model folder, which replaces one of the same name.

    Raises:
        UserError: it is not an archive of one model folder, is damaged or too large, or a file
            differs from its checksum.
        FileError: the folder cannot be written.
    """
    with temporary_folder() as place:
        _extract(content, name, place)
        folder = _checked_folder(place, name)
        target = into / folder.name
        write_folder(target, partial(shutil.copytree, folder))
    return target


def _extract(content: bytes, name: str, place: Path) -> None:
    """Extract all files of an archive below a folder.

    Raises:
        UserError: it is not an archive, is damaged, or holds too much.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entries = archive.infolist()
            size = sum(entry.file_size for entry in entries)
            if size > MOST_BYTES or len(entries) > _MOST_FILES:
                raise ValueError(f"it holds more than {MOST_BYTES:,} bytes or {_MOST_FILES} files")
            archive.extractall(place)  # follows no links, and stays in `place`
    except OSError as error:  # also of damaged bz2, which has no text of the system
        reason = error.strerror or error
        raise UserError(f"{name}: damaged, or cannot be unpacked ({reason})") from None
    except MemoryError:
        raise  # says nothing about the archive; the command reports it as such
    except Exception as error:  # each compression raises errors of its own for damaged data
        raise UserError(f"{name}: not a zip archive of a model ({error})") from None


def _checked_folder(place: Path, name: str) -> Path:
    """Return the only folder of an extracted archive, whose files are as its list says.

    Raises:
        UserError: there is another file or folder, no list, or a file differs from it.
    """
    entries = [*place.iterdir()]
    if len(entries) != 1 or not entries[0].is_dir():
        raise UserError(f"{name}: not a zip archive of one model folder")
    (folder,) = entries
    if not is_listed(folder):
        raise UserError(f"{name}: its folder has no {LIST_NAME}")
    wrong = differences(folder)
    if wrong:
        raise UserError(f"{name}: {wrong[0].removeprefix(f'{place}/')}")
    return folder
