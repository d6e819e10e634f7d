"""Write a model folder whole or not at all."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
import yaml
from safetensors import SafetensorError

from onmt_entmax.checkpoint.contents import (
    CONFIG,
    FORMAT_VERSION,
    STATE,
    VOCABULARY,
    WEIGHTS,
)
from onmt_entmax.checkpoint.weights import weights_to_save
from onmt_entmax.config import ModelConfig
from onmt_entmax.data.vocabulary import Vocabularies
from onmt_entmax.data.vocabulary_content import as_content
from onmt_entmax.errors import first_line
from onmt_entmax.files import FileError, write_folder
from onmt_entmax.files.checksums import write_list
from onmt_entmax.model import SparseNMTModel
from onmt_entmax.version import __version__


def save(
    folder: Path,
    model: SparseNMTModel,
    config: ModelConfig,
    vocabularies: Vocabularies,
    options: Mapping[str, Any],
    training_state: Mapping[str, Any] | None = None,
    others: Mapping[str, bytes] | None = None,
) -> None:
    """Write a model folder.

    Args:
        folder: the folder to write; an older one is replaced.
        model: the network. Weights that two parts share are saved once.
        config: the configuration of the network, from which it is built when it is loaded.
        vocabularies: the vocabularies of source and target.
        options: every option of the training, defaults included.
        training_state: what a training needs to continue: tensors, numbers, strings, lists and
            dicts; None for a released model.
        others: contents of other files beside config.yaml, by name, such as subword models.

    Raises:
        FileError: if the folder cannot be written.
    """
    description = {
        "format_version": FORMAT_VERSION,
        "package_version": __version__,
        "model": asdict(config),
        "options": dict(options),
    }
    files = {
        CONFIG: yaml.safe_dump(description, sort_keys=False, allow_unicode=True).encode(),
        VOCABULARY: json.dumps(as_content(vocabularies), ensure_ascii=False, indent=0).encode(),
        **(others or {}),
    }

    def write(temporary: Path) -> None:
        temporary.mkdir()
        for name, content in files.items():
            (temporary / name).write_bytes(content)
        try:
            _write_tensors(temporary, model, training_state)
        except (SafetensorError, RuntimeError) as error:  # such as for a full disk
            # torch raises an error of its own while it handles the system's, which has the reason.
            reason = first_line(error.__context__ or error)
            raise FileError(f"{folder}: cannot be written ({reason})") from None
        # safetensors creates a file that only its owner can read, whatever the umask.
        shutil.copymode(temporary / VOCABULARY, temporary / WEIGHTS)
        write_list(temporary)

    write_folder(folder, write)


def _write_tensors(
    folder: Path, model: SparseNMTModel, training_state: Mapping[str, Any] | None
) -> None:
    """Write the weights, and the training state if there is one.

    Raises:
        SafetensorError, RuntimeError: a file cannot be written.
    """
    safetensors.torch.save_file(weights_to_save(model), folder / WEIGHTS)
    if training_state is not None:
        (folder / STATE).parent.mkdir()
        with open(folder / STATE, "wb") as file:
            torch.save(dict(training_state), file)
