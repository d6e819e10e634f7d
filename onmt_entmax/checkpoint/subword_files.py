"""Subword models inside a model folder, beside config.yaml.

Options of a training name them by paths, and options in config.yaml by file names.
"""

from collections.abc import Mapping
from os.path import isfile
from pathlib import Path
from typing import Any

from onmt_entmax.checkpoint.contents import (
    CONFIG,
    LARGEST_TEXT,
    CheckpointError,
    as_checkpoint_error,
)
from onmt_entmax.data.subwords import SUBWORD_FILES
from onmt_entmax.files import FileError, read_bytes
from onmt_entmax.files.checksums import read_checked
from onmt_entmax.rules import shown


def with_subword_files(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return options with file names for the subword models, and the contents of these files.

    `save` takes the result as its `options` and `others`.

    Args:
        options: options of a training or a loaded model, which name subword models by paths.

    Raises:
        FileError: if a file cannot be read.
    """
    renamed, contents = dict(options), {}
    names: dict[str, str] = {}  # by path, since both sides may share a file
    for option in SUBWORD_FILES:
        path = options.get(option)
        if not isinstance(path, str) or not path:
            continue
        name = names.setdefault(path, option + Path(path).suffix)
        try:
            contents[name] = read_bytes(Path(path), LARGEST_TEXT)
        except FileError as error:
            raise FileError(f"{option}: {error}") from None
        renamed[option] = name
    return renamed, contents


def with_subword_paths(folder: Path, options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a model folder with paths of its subword models.

    Raises:
        CheckpointError: if an option names no file of the folder, or a file that was changed.
    """
    paths = {
        option: str(_path_of_own_file(folder, option, options[option]))
        for option in SUBWORD_FILES
        if options.get(option)
    }
    return options | paths


def _path_of_own_file(folder: Path, option: str, value: object) -> Path:
    """Return the path of the file of a model folder that an option names, if it is unchanged.

    A stranger's folder could name a private file of the user, which `export` would then copy.

    Args:
        folder: the model folder.
        option: name of the option.
        value: its value in config.yaml.

    Raises:
        CheckpointError: if the option names no file of the folder, or a file that was changed.
    """
    # Unlike `Path.is_file`, `isfile` raises no errors.
    if not (isinstance(value, str) and Path(value).name == value and isfile(folder / value)):
        raise CheckpointError(
            f"{folder / CONFIG}: options: {option}: {shown(value)} is not a file of this "
            "folder; a subword model is a file beside config.yaml, and its name stands here"
        )
    with as_checkpoint_error(folder / value):
        read_checked(folder, value, LARGEST_TEXT)
    return folder / value
