"""The files that `prepare` writes: pairs of tokens, and `train.yaml` to train with.

A checksum at the end of `train.yaml` tells a file that nobody changed, which `prepare` may replace,
from one that a user has edited.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from onmt_entmax.cli.messages import warn
from onmt_entmax.cli.plans import Plan
from onmt_entmax.errors import UserError
from onmt_entmax.files import read_bytes

CONFIGURATION = "train.yaml"  # its name in the folder of the data
_MARK = "# Checksum, which tells `prepare` that nobody changed this file: "
_PLANNED = "# Planned for "


def keep_configuration(out: Path, minutes: float | None) -> None:
    """Refuse to replace a configuration that `prepare` did not write; warn if its plan is lost.

    Args:
        out: the folder of the data.
        minutes: the time that the new plan is for, if one is given.

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
        if minutes is None and f"\n{_PLANNED}".encode() in text:
            warn(f"{path}: was planned for a time; without --minutes, the default plan replaces it")


def training_file(
    data: Mapping[str, Sequence[Path]],
    model: Path,
    settings: Sequence[str],
    commands: Sequence[str],
    plan: Plan | None,
    weights: Mapping[str, int] | None = None,
) -> str:
    """Return the text of a configuration.

    Args:
        data: source and target file of each corpus, and of `valid`.
        model: the run folder.
        settings: the other options, as YAML.
        commands: for the comment at its head.
        plan: for a time, if one is given.
        weights: lines of each corpus in turn; of others, 1.
    """
    weights = weights or {}
    gpu = (
        "-gpu 0 to translate"
        if plan and plan.gpu
        else "-gpu_ranks 0 to train and -gpu 0 to translate"
    )
    reason = (
        plan.lines
        if plan
        else ["--minutes of `prepare` measures this machine, and plans for that time."]
    )
    lines = [
        "# Written by `onmt-entmax prepare`. Paths are relative to the folder in which it ran.",
        f"# On a GPU, add {gpu}.",
        *(f"# {line}" for line in reason),
        "#",
        *(f"#   {command}" for command in commands),
        "",
        "data:",
        *(
            f"  {name}: {{path_src: {quoted(source)}, path_tgt: {quoted(target)}"
            + (f", weight: {weights[name]}" if name in weights else "")
            + "}"
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


def pair_texts(pairs: Mapping[Path, Sequence[tuple[str, str]]]) -> dict[Path, str]:
    """Return the contents of `PATH.src` and `PATH.tgt` for the pairs of each path."""
    texts = {}
    for path, some in pairs.items():
        for side, suffix in enumerate(("src", "tgt")):
            lines = (pair[side] + "\n" for pair in some)
            texts[path.with_name(f"{path.name}.{suffix}")] = "".join(lines)
    return texts
