"""Read single files of a model folder, after their checksums were compared."""

import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from onmt_entmax.checkpoint.contents import (
    CELLS,
    CONFIG,
    FORMAT_VERSION,
    LARGEST_TENSORS,
    LARGEST_TEXT,
    STATE,
    VOCABULARY,
    CheckpointError,
    as_checkpoint_error,
)
from onmt_entmax.checkpoint.torch_files import read_torch_file
from onmt_entmax.config import ModelConfig
from onmt_entmax.data.vocabulary import Vocabularies
from onmt_entmax.data.vocabulary_content import read_vocabularies
from onmt_entmax.errors import UserError
from onmt_entmax.files import text_lines
from onmt_entmax.files.checksums import read_checked
from onmt_entmax.files.parsing import parse_json, parse_yaml
from onmt_entmax.rules import shown
from onmt_entmax.strings.cells import Cells, parse_cells

_LONGEST_VERSION = 20  # characters of a package's version; a stranger may have written more


class SavedConfig(NamedTuple):
    """The content of config.yaml.

    Attributes:
        network: the configuration of the network.
        options: all options of the training, by name.
        package_version: version of the onmt_entmax that wrote the folder.
    """

    network: ModelConfig
    options: dict[str, Any]
    package_version: str


def read_config(folder: Path) -> SavedConfig:
    """Return the content of config.yaml in a model folder.

    Raises:
        CheckpointError: if config.yaml is missing, damaged or of a newer format.
    """
    content = _read_mapping(folder, CONFIG, parse_yaml)
    path = folder / CONFIG
    _check_format(path, str(content.get("format_version")))
    for key in ("model", "options"):
        if not isinstance(content.get(key), dict):
            raise CheckpointError(
                f"{path}: {key}: must be a mapping, not {shown(content.get(key))}"
            )
    network_options = dict(content["model"])
    if "tag_head" in network_options and network_options["tag_head"] is None:
        # Before format 1.1 every model recorded this option, also those that did not use it.
        del network_options["tag_head"]
    with as_checkpoint_error(path):
        network = ModelConfig.read(network_options)
    package_version = str(content.get("package_version"))[:_LONGEST_VERSION]
    return SavedConfig(network, content["options"], package_version)


def _check_format(path: Path, version: str) -> None:
    """Check that this program reads a version of the format.

    Raises:
        CheckpointError: if it is no version, or a newer one.
    """
    if not re.fullmatch(r"\d{1,4}\.\d{1,4}", version):
        raise CheckpointError(f"{path}: no format_version of the form {FORMAT_VERSION}")
    major, _ = version.split(".")
    newest_major, _ = FORMAT_VERSION.split(".")
    if int(major) > int(newest_major):
        raise CheckpointError(
            f"{path}: format {version} is newer than this program reads ({newest_major}.x); "
            "install a newer onmt_entmax"
        )


def _read_mapping(folder: Path, name: str, parse: Callable[[str], Any]) -> dict[str, Any]:
    """Return the mapping that a text file of a model folder holds."""
    with as_checkpoint_error(folder / name):
        content = parse(read_checked(folder, name, LARGEST_TEXT).decode("utf-8"))
        if not isinstance(content, dict):
            raise UserError("it does not hold what a model folder holds there")
    return content


def read_saved_vocabularies(folder: Path) -> Vocabularies:
    """Return the vocabularies of a model folder.

    Raises:
        CheckpointError: vocab.json is missing or damaged.
    """
    content = _read_mapping(folder, VOCABULARY, parse_json)
    with as_checkpoint_error(folder / VOCABULARY):
        return read_vocabularies(
            source=content.get("source"),
            target=content.get("target"),
            seen=content.get("seen"),
            seen_targets=content.get("seen_targets"),
        )


def read_cells(folder: Path) -> Cells:
    """Return the cells of the languages of a model folder; none if it has no `cells.tsv`.

    Raises:
        UserError: the file is damaged.
    """
    path = folder / CELLS
    if not path.exists():
        return {}
    lines = text_lines(io.BytesIO(read_checked(folder, CELLS, LARGEST_TEXT)), str(path))
    return parse_cells(lines, str(path))


def read_training_state(folder: Path, at_most: int = LARGEST_TENSORS) -> dict[str, Any]:
    """Return the `training_state` that was given to `save`.

    Args:
        folder: a model folder.
        at_most: largest size of the file, in bytes.

    Raises:
        CheckpointError: if there is none, as in a released model, or it is damaged.
    """
    if not (folder / STATE).exists():
        raise CheckpointError(
            f"{folder}: holds no training state, so training cannot continue; "
            "add -reset_optim all to train its weights from step 0"
        )
    with as_checkpoint_error(folder / STATE):
        content = io.BytesIO(read_checked(folder, STATE, at_most))
    try:
        state: dict[str, Any] = read_torch_file(content)
    except Exception:  # damaged files raise many kinds of errors, which nothing lists
        raise CheckpointError(f"{folder / STATE}: cut short or damaged") from None
    return state
