"""Load a model folder, and read single files of one.

Each file is read once, its checksum compared, and the same bytes parsed. `load` gives
`onmt_entmax.load` and all commands their models.
"""

import io
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from os.path import isfile
from pathlib import Path
from typing import Any, NamedTuple

import torch

from onmt_entmax.checkpoint.contents import (
    CELLS,
    CONFIG,
    FORMAT_VERSION,
    LARGEST,
    LARGEST_TEXT,
    STATE,
    VOCABULARY,
    WEIGHTS,
    CheckpointError,
    naming,
)
from onmt_entmax.checkpoint.finding import find_model
from onmt_entmax.checkpoint.weights import copy_weights, read_weights
from onmt_entmax.config import ModelConfig
from onmt_entmax.data.subwords import SUBWORD_FILES
from onmt_entmax.data.vocabulary import Vocabularies
from onmt_entmax.data.vocabulary_content import read_vocabularies
from onmt_entmax.errors import UserError
from onmt_entmax.files import text_lines
from onmt_entmax.files.checksums import LIST_NAME, is_listed, read_checked
from onmt_entmax.files.parsing import parse_json, parse_yaml
from onmt_entmax.initial_weights import SkippedInitialisation
from onmt_entmax.model import SparseNMTModel, build_model
from onmt_entmax.rules import shown
from onmt_entmax.strings.cells import Cells, parse_cells
from onmt_entmax.strings.marks import is_language
from onmt_entmax.strings.task import TRANSLATION, StringTask
from onmt_entmax.strings.task_record import recorded_task

_LONGEST_VERSION = 20  # characters of a package's version; a stranger may have written more


@dataclass(frozen=True)
class LoadedModel:
    """A model folder in memory.

    Attributes:
        folder: where it is.
        model: on its device, in evaluation mode.
        config: the network.
        vocabularies: of source and target.
        options: of the run that trained the model, by name.
        package_version: of the program that wrote the folder.
        task: what the tokens are.
    """

    folder: Path
    model: SparseNMTModel
    config: ModelConfig
    vocabularies: Vocabularies
    options: dict[str, Any]
    package_version: str
    task: StringTask = TRANSLATION

    @property
    def right_to_left(self) -> bool:
        """Whether the network writes the last token of an output first."""
        return self.task.right_to_left


class SavedConfig(NamedTuple):
    """What config.yaml says.

    Attributes:
        network: which `build_model` builds.
        options: of the run that trained the model, by name.
        package_version: of the program that wrote the folder.
    """

    network: ModelConfig
    options: dict[str, Any]
    package_version: str


def load(path: Path | str, device: torch.device | None = None) -> LoadedModel:
    """Load a model folder, or the best checkpoint of a run folder, in evaluation mode.

    A run may delete a checkpoint while it is read; then this reads the one that is best now.

    Raises:
        CheckpointError: a file is missing, damaged or of a newer format.
    """
    target = device or torch.device("cpu")
    folder = find_model(Path(path))
    while True:
        try:
            return _load(folder, target)
        except CheckpointError:
            best_now = find_model(Path(path))
            if best_now == folder:  # it was not deleted, but cannot be read
                raise
            folder = best_now


def _load(folder: Path, device: torch.device) -> LoadedModel:
    """Return the model of a folder, on a device and in evaluation mode.

    Options that name subword files of the folder have their whole paths afterwards.

    Raises:
        CheckpointError: a file is missing, damaged or of a newer format.
    """
    if not is_listed(folder):
        warnings.warn(f"{folder}: has no {LIST_NAME}: its files are not checked", stacklevel=3)
    saved = read_config(folder)
    options = _with_own_files(folder, saved.options)
    vocabularies = _read_vocabularies(folder)
    with naming(folder / CONFIG), SkippedInitialisation():
        model = build_model(saved.network, vocabularies)
    with naming(folder / WEIGHTS):
        copy_weights(model, read_weights(folder))
    with naming(folder / CONFIG):
        task = recorded_task(options, any(map(is_language, vocabularies.source.tokens)))
    model.to(device).eval()
    return LoadedModel(
        folder=folder,
        model=model,
        config=saved.network,
        vocabularies=vocabularies,
        options=options,
        package_version=saved.package_version,
        task=task,
    )


def read_config(folder: Path) -> SavedConfig:
    """Return what config.yaml of a model folder says.

    Raises:
        CheckpointError: config.yaml is missing, damaged or of a newer format.
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
        del network_options["tag_head"]  # an option before format 1.1, of models that do not use it
    with naming(path):
        network = ModelConfig.read(network_options)
    package_version = str(content.get("package_version"))[:_LONGEST_VERSION]
    return SavedConfig(network, content["options"], package_version)


def _check_format(path: Path, version: str) -> None:
    """Check that this program reads a version of the format.

    Raises:
        CheckpointError: it is no version, or a newer one.
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
    with naming(folder / name):
        content = parse(read_checked(folder, name, LARGEST_TEXT).decode("utf-8"))
        if not isinstance(content, dict):
            raise UserError("it does not hold what a model folder holds there")
    return content


def _read_vocabularies(folder: Path) -> Vocabularies:
    """Return the vocabularies of a model folder.

    Raises:
        CheckpointError: vocab.json is missing or damaged.
    """
    content = _read_mapping(folder, VOCABULARY, parse_json)
    with naming(folder / VOCABULARY):
        return read_vocabularies(
            source=content.get("source"),
            target=content.get("target"),
            seen=content.get("seen"),
            seen_targets=content.get("seen_targets"),
        )


def _with_own_files(folder: Path, options: dict[str, Any]) -> dict[str, Any]:
    """Return options with the paths of the subword files, which the folder names without one.

    Raises:
        CheckpointError: an option names no file of the folder, or one that was changed.
    """
    paths = {
        option: str(_own_file(folder, option, options[option]))
        for option in SUBWORD_FILES
        if options.get(option)
    }
    return options | paths


def _own_file(folder: Path, option: str, value: object) -> Path:
    """Return the file of a model folder that an option names, checked; decoding reads it again.

    A stranger's folder could name any file of its reader, which `export` would give away.

    Raises:
        CheckpointError: it is not a file of the folder, or was changed.
    """
    # Unlike `Path.is_file`, `isfile` raises no errors.
    if not (isinstance(value, str) and Path(value).name == value and isfile(folder / value)):
        raise CheckpointError(
            f"{folder / CONFIG}: options: {option}: {shown(value)} is not a file of this "
            "folder; a subword model is a file beside config.yaml, and its name stands here"
        )
    with naming(folder / value):
        read_checked(folder, value, LARGEST_TEXT)
    return folder / value


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


def read_training_state(folder: Path, at_most: int = LARGEST) -> dict[str, Any]:
    """Return the `training_state` that was given to `save`; its file has `at_most` bytes.

    Raises:
        CheckpointError: there is none (a released model), or it is damaged.
    """
    if not (folder / STATE).exists():
        raise CheckpointError(
            f"{folder}: holds no training state, so training cannot continue; "
            "add -reset_optim all to train its weights from step 0"
        )
    with naming(folder / STATE):
        content = io.BytesIO(read_checked(folder, STATE, at_most))
    try:
        return torch.load(content, map_location="cpu", weights_only=True)
    except Exception:  # a damaged file raises many kinds, none documented
        raise CheckpointError(f"{folder / STATE}: cut short or damaged") from None
