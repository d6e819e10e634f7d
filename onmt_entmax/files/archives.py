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

# A small archive may unpack to more than a disk holds, so both sizes are limited.
MOST_BYTES = 1 << 30  # of an archive, and of the files that it holds
_MOST_FILES = 1000


def unpack(content: bytes, name: str, into: Path) -> Path:
    """Write the model folder of an archive, whole or not at all, and return it.

    Args:
        content: bytes of the archive.
        name: name of the archive, for errors.
        into: the folder into which the model folder is written; it replaces one of its name there.

    Raises:
        UserError: if it is not an archive of one model folder, is damaged or too large, or a file
            differs from its checksum.
        FileError: if the folder cannot be written.
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
    except OSError as error:  # also if bz2 data is damaged: then `strerror` is None
        reason = error.strerror or error
        raise UserError(f"{name}: damaged, or cannot be unpacked ({reason})") from None
    except MemoryError:
        raise  # the archive may be in order; the command says that memory ran out
    except Exception as error:  # each compression raises errors of its own for damaged data
        raise UserError(f"{name}: not a zip archive of a model ({error})") from None


def _checked_folder(place: Path, name: str) -> Path:
    """Return the only folder of an extracted archive, after its files were compared with its list.

    Raises:
        UserError: if there are other files or folders, there is no list, or a file differs from it.
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
