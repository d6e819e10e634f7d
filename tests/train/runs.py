"""Training again, and changing the recorded state of a run."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import yaml

from onmt_entmax.checkpoint import STATE
from onmt_entmax.checkpoint.contents import CONFIG
from onmt_entmax.cli.train import main as train
from onmt_entmax.files.checksums import write_list

State = dict[str, Any]


def train_again(arguments: list[str], *more: object) -> int:
    """Train with further arguments; return the exit status."""
    return train([*arguments, *map(str, more)])


def change_state(checkpoint: Path, change: Callable[[State], object]) -> None:
    """Change the training state of a checkpoint, and write its checksum again."""
    state = torch.load(checkpoint / STATE, weights_only=True)
    change(state)
    torch.save(state, checkpoint / STATE)
    write_list(checkpoint)


def forget_option(checkpoint: Path, name: str) -> None:
    """Leave an option out of those of a checkpoint, and write its checksum again."""
    _change_options(checkpoint, lambda options: options.pop(name))


def _change_options(checkpoint: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the options that a checkpoint records, and write its checksum again."""
    config = yaml.safe_load((checkpoint / CONFIG).read_text(encoding="utf-8"))
    change(config["options"])
    (checkpoint / CONFIG).write_text(yaml.safe_dump(config), encoding="utf-8")
    write_list(checkpoint)


def change_option(checkpoint: Path, name: str, value: object) -> None:
    """Record another value of an option in a checkpoint, and write its checksum again."""
    _change_options(checkpoint, lambda options: options.update({name: value}))


def change_run_state(checkpoint: Path, **values: object) -> None:
    """Change entries of the `SavedRun` of a checkpoint."""
    change_state(checkpoint, lambda state: state["run"].update(values))
