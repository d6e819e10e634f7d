"""Changes to model folders, and the lines with which they are refused."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from onmt_entmax.checkpoint import CheckpointError
from onmt_entmax.files.checksums import write_list


def refusal(work: Callable[[], object]) -> str:
    """Return the one line with which work is refused."""
    with pytest.raises(CheckpointError) as raised:
        work()
    message = str(raised.value)
    assert "\n" not in message
    return message


def change_config(
    folder: Path, change: Callable[[dict[str, Any]], object], *, listed: bool = True
) -> None:
    """Change the content of config.yaml.

    Args:
        folder: of the model.
        change: changes the content in place.
        listed: whether the list of checksums has the changed file, as of one that was saved so.
    """
    path = folder / "config.yaml"
    content = yaml.safe_load(path.read_text())
    change(content)
    path.write_text(yaml.safe_dump(content))
    if listed:
        write_list(folder)
