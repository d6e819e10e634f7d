"""Refuse to continue or evaluate a training whose options in the matrix have changed since."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onmt_entmax.checkpoint import checkpoint_steps
from onmt_entmax.errors import UserError
from onmt_entmax.files.parsing import parse_yaml
from onmt_entmax.options.reader import read_yaml
from tools.papers.matrix import Training
from tools.papers.option_files import to_yaml


def check_unchanged(training: Training) -> None:
    """Check that the checkpoints of a training, if any, were trained with its options.

    The order of the options may differ.

    Raises:
        UserError: an option differs; the message names the first.
    """
    path = training.folder / "config.yaml"
    if not path.is_file() or not checkpoint_steps(training.run_folder):
        return
    trained_with = read_yaml(str(path))
    # Through YAML, too: it reads the string "1e-3" as the number 0.001.
    options = parse_yaml(to_yaml(training.training_options()))
    for name in (*options, *trained_with):
        was, now = _value_text(trained_with, name), _value_text(options, name)
        if was != now:
            raise UserError(
                f"{training.folder}: was trained with {name} {was}, the matrix now says {now}; "
                "delete that folder or choose another run folder"
            )


def _value_text(options: Mapping[str, Any], name: str) -> str:
    """Return the value of an option, for a message."""
    return repr(options[name]) if name in options else "unset"
