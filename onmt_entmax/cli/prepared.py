"""What `prepare` leaves besides data: a configuration to train with, and the next commands."""

import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from onmt_entmax.cli.ending import warn
from onmt_entmax.errors import UserError, printable
from onmt_entmax.files import read_bytes
from onmt_entmax.rules import positive

CONFIGURATION = "train.yaml"  # its name in the folder of the data
_MARK = "# Checksum, which tells `prepare` that nobody changed this file: "
_MEASURED = "Measured on this machine's CPU: "
MINUTES: dict[str, Any] = {
    "type": positive(10**5),
    "metavar": "N",
    "help": "plan a training of this time on this machine's CPU, whose updates are measured",
}


def next_lines(*commands: str) -> list[str]:
    """Return each command of `onmt-entmax` as a line for a shell."""
    return [printable(f"onmt-entmax {command}") for command in commands]


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
        if minutes is None and _MEASURED.encode() in text:
            warn(f"{path}: was planned for a time; without --minutes, the default plan replaces it")


def plan_for(minutes: float, out: Path) -> tuple[int, str]:
    """Return how many updates take a time, but at least 100, and a line that says so.

    Args:
        minutes: the time, without that of validations.
        out: a folder with data and a configuration, whose updates are measured.
    """
    from onmt_entmax.options.train import training_setup  # imports torch, as the next line does
    from onmt_entmax.train.run import time_updates

    setup = training_setup(["-config", str(out / CONFIGURATION)])
    seconds = time_updates(setup.data, setup.vocabulary, setup.model, setup.training)
    steps = max(round(60 * minutes / seconds), 100)
    time = f"{steps * seconds / 60:.3g} minutes and validations: {steps} updates of {seconds:.3g} s"
    print(time, file=sys.stderr)
    return steps, f"{_MEASURED}{time}."


def training_file(
    data: Mapping[str, Sequence[Path]],
    model: Path,
    settings: Sequence[str],
    commands: Sequence[str],
    time: str,
) -> str:
    """Return the text of a configuration.

    Args:
        data: source and target file of each corpus, and of `valid`.
        model: the run folder.
        settings: the other options, as YAML.
        commands: for the comment at its head.
        time: a line on how long training takes, if that was measured.
    """
    lines = [
        "# Written by `onmt-entmax prepare`. Paths are relative to the folder in which it ran.",
        "# On a GPU, add -gpu_ranks 0 to train and -gpu 0 to translate.",
        f"# {time or '--minutes of `prepare` measures updates, and plans for that time.'}",
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


def pair_texts(pairs: Mapping[Path, Sequence[tuple[str, str]]]) -> dict[Path, str]:
    """Return the contents of `PATH.src` and `PATH.tgt` for the pairs of each path."""
    texts = {}
    for path, some in pairs.items():
        for side, suffix in enumerate(("src", "tgt")):
            lines = (pair[side] + "\n" for pair in some)
            texts[path.with_name(f"{path.name}.{suffix}")] = "".join(lines)
    return texts


def quoted(path: Path) -> str:
    """Return a path as YAML reads it, which may contain `: ` or ` #`."""
    return json.dumps(str(path), ensure_ascii=False)


def _checksum(text: bytes) -> str:
    """Return the checksum that a configuration ends with, of the lines before."""
    return hashlib.sha256(text).hexdigest()[:16]
