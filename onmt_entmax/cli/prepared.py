"""What `prepare` leaves besides data: a configuration to train with, and the next commands."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from onmt_entmax.errors import UserError, printable
from onmt_entmax.files import read_bytes

CONFIGURATION = "train.yaml"  # its name in the folder of the data
_MARK = "# Checksum, which tells `prepare` that nobody changed this file: "


def next_lines(*commands: str) -> list[str]:
    """Return each command of `onmt-entmax` as a line for a shell."""
    return [printable(f"onmt-entmax {command}") for command in commands]


def keep_configuration(out: Path) -> None:
    """Refuse to replace a configuration that `prepare` did not write.

    Args:
        out: the folder of the data.

    Raises:
        UserError: names the file.
    """
    path = out / CONFIGURATION
    if path.exists() or path.is_symlink():
        text, _, checksum = read_bytes(path, 1 << 20).rpartition(_MARK.encode())
        if _checksum(text) != checksum.strip().decode("ascii", "replace"):
            raise UserError(
                f"{path}: was changed, or made otherwise; rename it, remove it, or name another "
                "--out"
            )


def training_file(
    data: Mapping[str, Sequence[Path]],
    model: Path,
    settings: Sequence[str],
    commands: Sequence[str],
) -> str:
    """Return the text of a configuration.

    Args:
        data: source and target file of each corpus, and of `valid`.
        model: the run folder.
        settings: the other options, as YAML.
        commands: for the comment at its head.
    """
    lines = [
        "# Written by `onmt-entmax prepare`. Paths are relative to the folder in which it ran.",
        "# On a GPU, add -gpu_ranks 0 to train and -gpu 0 to translate.",
        "#",
        *(f"#   {command}" for command in commands),
        "",
        "data:",
        *(
            f"  {name}: {{path_src: {quoted(source)}, path_tgt: {quoted(target)}}}"
            for name, (source, target) in data.items()
        ),
        f"save_model: {quoted(model)}",
        *settings,
    ]
    text = "\n".join(lines)
    return f"{text}{_MARK}{_checksum(text.encode())}\n"


def quoted(path: Path) -> str:
    """Return a path as YAML reads it, which may contain `: ` or ` #`."""
    return json.dumps(str(path), ensure_ascii=False)


def _checksum(text: bytes) -> str:
    """Return the checksum that a configuration ends with, of the lines before."""
    return hashlib.sha256(text).hexdigest()[:16]
