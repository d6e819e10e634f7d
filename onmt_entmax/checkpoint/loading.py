"""Load a model folder, or the best checkpoint of a run folder, as a model in memory."""

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from onmt_entmax.checkpoint.contents import (
    CONFIG,
    WEIGHTS,
    CheckpointError,
    as_checkpoint_error,
)
from onmt_entmax.checkpoint.finding import find_model
from onmt_entmax.checkpoint.reading import read_config, read_saved_vocabularies
from onmt_entmax.checkpoint.subword_files import with_subword_paths
from onmt_entmax.checkpoint.weights import copy_weights, read_weights
from onmt_entmax.config import ModelConfig
from onmt_entmax.data.vocabulary import Vocabularies
from onmt_entmax.files.checksums import LIST_NAME, is_listed
from onmt_entmax.initial_weights import SkippedInitialisation
from onmt_entmax.model import SparseNMTModel, build_model
from onmt_entmax.strings.marks import is_language
from onmt_entmax.strings.task import TRANSLATION, StringTask
from onmt_entmax.strings.task_record import recorded_task


@dataclass(frozen=True)
class LoadedModel:
    """A model folder in memory.

    Attributes:
        folder: path of the folder.
        model: the network, on its device, in evaluation mode.
        config: the configuration of the network.
        vocabularies: the vocabularies of source and target.
        options: all options of the training, by name.
        package_version: version of the onmt_entmax that wrote the folder.
        task: how the strings of users become tokens, and tokens strings.
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


def load(path: Path | str, device: torch.device | None = None) -> LoadedModel:
    """Load a model folder, or the best checkpoint of a run folder, in evaluation mode.

    A run may delete a checkpoint while it is read. Then the one that is best now is loaded.

    Args:
        path: path of the folder, see `find_model`.
        device: where the model computes; None: on the CPU.

    Raises:
        CheckpointError: if a file is missing, damaged or of a newer format.
    """
    target = device or torch.device("cpu")
    folder = find_model(Path(path))
    while True:
        try:
            return _load(folder, target)
        except CheckpointError:
            best_now = find_model(Path(path))
            if best_now == folder:  # the error has another reason than a deleted checkpoint
                raise
            folder = best_now


def _load(folder: Path, device: torch.device) -> LoadedModel:
    """Return the model of a folder, on a device and in evaluation mode.

    Its options name subword models by their paths.

    Raises:
        CheckpointError: if a file is missing, damaged or of a newer format.
    """
    if not is_listed(folder):
        warnings.warn(f"{folder}: has no {LIST_NAME}: its files are not checked", stacklevel=3)
    saved = read_config(folder)
    options = with_subword_paths(folder, saved.options)
    vocabularies = read_saved_vocabularies(folder)
    with as_checkpoint_error(folder / CONFIG), SkippedInitialisation():
        model = build_model(saved.network, vocabularies)
    with as_checkpoint_error(folder / WEIGHTS):
        copy_weights(model, read_weights(folder))
    with as_checkpoint_error(folder / CONFIG):
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
