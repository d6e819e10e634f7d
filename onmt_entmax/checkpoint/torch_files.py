"""Read files that `torch.save` wrote, without running code in them or filling the memory."""

import os
import zipfile
from typing import Any, BinaryIO

import torch

_ZIP = b"PK\x03\x04"  # the first bytes of a zip archive, by which torch, too, knows one


def read_torch_file(file: BinaryIO) -> Any:
    """Return the content of a file: tensors, numbers, texts, lists and dicts.

    Args:
        file: open at its start.

    Raises:
        UnpicklingError: the file names a class or function that is not allowed.
        Exception: it is damaged. Neither torch nor zipfile lists its errors for that.
    """
    _refuse_growing(file)
    return torch.load(file, map_location="cpu", weights_only=True)


def _refuse_growing(file: BinaryIO) -> None:
    """Refuse an archive whose entries are larger together than itself.

    `torch.save` compresses nothing, but torch reads compressed entries: a small file of a stranger
    could fill the memory. So could entries that share their bytes.

    Raises:
        ValueError: they are larger.
        zipfile.BadZipFile: the archive is damaged.
    """
    begins_as_zip = file.read(len(_ZIP)) == _ZIP
    if begins_as_zip:  # the form before PyTorch 1.6 is not compressed
        size = file.seek(0, os.SEEK_END)
        with zipfile.ZipFile(file) as archive:
            if sum(entry.file_size for entry in archive.infolist()) > size:
                raise ValueError("its entries are larger than the file")
    file.seek(0)
