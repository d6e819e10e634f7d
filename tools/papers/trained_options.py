"""Write the options of trainings to files, and refuse a training whose options have changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from onmt_entmax.checkpoint import checkpoint_steps
from onmt_entmax.errors import UserError
from onmt_entmax.options.reader import read_yaml
from tools.papers.matrix import Training


def to_yaml(content: Mapping[str, Any]) -> str:
    """Return options as YAML, in their order."""
    return str(yaml.safe_dump(dict(content), sort_keys=False, allow_unicode=True))


def check_unchanged(training: Training) -> None:
    """Refuse a training whose checkpoints are of other options than the matrix now has.

    Raises:
        UserError: names the first of them.
    """
    path, options = training.folder / "config.yaml", training.training_options()
    if not path.is_file() or not checkpoint_steps(training.run_folder):
        return
    # Compare as text first: YAML reads a string of digits as a number.
    if path.read_text(encoding="utf-8") == to_yaml(options):
        return
    trained_with = read_yaml(str(path))
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
