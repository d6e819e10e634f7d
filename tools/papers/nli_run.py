"""A trained attention classifier, and its files in the folder of a run."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

import safetensors.torch

from onmt_entmax.errors import UserError
from onmt_entmax.files import read_object
from tools.papers.nli_model import Classifier
from tools.papers.nli_settings import Settings


class Run(NamedTuple):
    """A trained classifier.

    Attributes:
        settings: its configuration.
        words: its vocabulary, in the order of ids.
        model: the model after its best epoch.
    """

    settings: Settings
    words: list[str]
    model: Classifier


def run_files(folder: Path, run: Run) -> dict[Path, str | bytes]:
    """Return the contents of the files from which `load` reads a run again."""
    content = {"settings": asdict(run.settings), "words": run.words}
    return {
        folder / "model.json": json.dumps(content, ensure_ascii=False),
        folder / "model.safetensors": safetensors.torch.save(run.model.state_dict()),
    }


def load(folder: Path) -> Run:
    """Return the classifier that a training has written to a folder.

    Raises:
        UserError: a file cannot be read, or holds something else.
    """
    description = read_object(folder / "model.json")
    # Settings raise KeyError or TypeError if keys or types are wrong. Weights that do not fit raise
    # RuntimeError; a file of weights that cannot be read, OSError or SafetensorError.
    try:
        settings, words = Settings(**description["settings"]), description["words"]
        model = Classifier(settings, len(words))
        model.load_state_dict(safetensors.torch.load_file(folder / "model.safetensors"))
    except (KeyError, TypeError, RuntimeError, OSError, safetensors.SafetensorError) as error:
        raise UserError(f"{folder}: not a run of `nli train`, or damaged: {error}") from None
    return Run(settings, words, model)
