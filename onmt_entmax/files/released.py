"""Released models: where the pretrained one is, and archives of model folders.

An archive is a zip file of one model folder with its checksums, such as
`python -m zipfile -c NAME.zip NAME` makes of a folder that `onmt-entmax export` wrote.
"""

import io
import os
import shutil
import site
import sysconfig
import zipfile
from functools import partial
from pathlib import Path

from onmt_entmax.errors import UserError
from onmt_entmax.files import temporary_folder, write_folder
from onmt_entmax.files.checksums import LIST_NAME, differences, is_listed

PRETRAINED = "inflection-86"
LARGEST = 1 << 30  # bytes of an archive, and of what it holds
_MOST = 1000  # files of an archive


def cache_folder() -> Path:
    """Return the folder of fetched models, by the XDG base directory specification."""
    root = os.environ.get("XDG_CACHE_HOME", "")
    cache = root if os.path.isabs(root) else os.path.expanduser("~/.cache")
    return Path(cache, "onmt_entmax", "models")


def pretrained() -> Path:
    """Return the folder of the pretrained model: a checkout's, the wheel's, or the fetched one.

    Raises:
        UserError: no folder has it; says what to do.
    """
    checkout = Path(__file__).resolve().parents[2] / "data" / "models"
    roots = (sysconfig.get_path("data"), site.getuserbase())
    installed = [Path(root, "share", "onmt_entmax", "models") for root in roots]
    for folder in (checkout, *installed, cache_folder()):
        if (folder / PRETRAINED).is_dir():
            return folder / PRETRAINED
    raise UserError(
        f"{installed[0] / PRETRAINED}: the pretrained model is missing, though the wheel has it; "
        "reinstall the package, or name another model (`inflect --model PATH`, `serve PATH`)"
    )


def unpack(content: bytes, name: str, into: Path) -> Path:
    """Write the model folder of an archive, whole or not at all, and return it.

    Args:
        content: of the archive.
        name: of the archive, for errors.
        into: folder of the new folder, which replaces one of its name.

    Raises:
        UserError: it is not an archive of one model folder, is damaged or too large, or a file
            differs from its checksum.
        FileError: the folder cannot be written.
    """
    with temporary_folder() as place:
        try:
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                entries = archive.infolist()
                if sum(entry.file_size for entry in entries) > LARGEST or len(entries) > _MOST:
                    raise ValueError(f"it holds more than {LARGEST:,} bytes or {_MOST} files")
                archive.extractall(place)  # follows no links, and stays in `place`
        except OSError as error:  # of bz2, for one, without a number
            reason = error.strerror or error
            raise UserError(f"{name}: damaged, or cannot be unpacked ({reason})") from None
        except MemoryError:
            raise
        except Exception as error:  # a damaged file raises many kinds, of each compression its own
            raise UserError(f"{name}: not a zip archive of a model ({error})") from None
        folders = [*place.iterdir()]
        if len(folders) != 1 or not folders[0].is_dir():
            raise UserError(f"{name}: not a zip archive of one model folder")
        if not is_listed(folders[0]):
            raise UserError(f"{name}: its folder has no {LIST_NAME}")
        for line in differences(folders[0]):
            raise UserError(f"{name}: {line.removeprefix(f'{place}/')}")
        folder = into / folders[0].name
        write_folder(folder, partial(shutil.copytree, folders[0]))
    return folder
