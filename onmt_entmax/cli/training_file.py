"""The file `train.yaml` that `prepare` writes, to train with.

It ends with a checksum, by which `prepare` recognises a file that a user has edited, and does not
replace it.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from onmt_entmax.cli.messages import warn
from onmt_entmax.cli.plan_lines import PLANNED, plan_text
from onmt_entmax.cli.plans import Plan
from onmt_entmax.cli.yaml_lines import double_quoted
from onmt_entmax.errors import UserError
from onmt_entmax.files import read_bytes

CONFIGURATION = "train.yaml"  # its name in the folder of the data
_MARK = "# Checksum, which tells `prepare` that nobody changed this file: "
_MOST_BYTES = 1 << 20  # no configuration of `prepare` is larger


def refuse_replacing_edited(out: Path, minutes: float | None) -> None:
    """Refuse to replace a configuration that a user has edited; warn if a plan is replaced.

    Args:
        out: folder of the data.
        minutes: the time that the new configuration is planned for, if it is.

    Raises:
        UserError: the configuration was edited; the message names it.
    """
    path = out / CONFIGURATION
    if not path.exists() and not path.is_symlink():
        return
    text, _, checksum = read_bytes(path, _MOST_BYTES).rpartition(_MARK.encode())
    if _checksum(text) != checksum.strip().decode("ascii", "replace"):
        raise UserError(
            f"{path}: was edited, or not written by `prepare`; rename it, remove it, or name "
            "another --out"
        )
    if minutes is None and f"\n# {PLANNED}".encode() in text:
        warn(f"{path}: was planned for a time; without --minutes, the default plan replaces it")


class CorpusFiles(NamedTuple):
    """The two files of a corpus, and its weight.

    Attributes:
        source: file of the source lines.
        target: file of the target lines.
        weight: number of lines that training reads before the next corpus has its turn; None: 1.
    """

    source: Path
    target: Path
    weight: int | None = None


def training_file(
    corpora: Mapping[str, CorpusFiles],
    model: Path,
    settings: Sequence[str],
    commands: Sequence[str],
    plan: Plan | None,
) -> str:
    """Return the text of a configuration.

    Args:
        corpora: corpora by name; `valid` is the development set.
        model: run folder.
        settings: all other options, as lines of YAML.
        commands: next commands, for the comment at its head.
        plan: plan for `--minutes`, if the user gives a time.
    """
    lines = [
        *_head(commands, plan),
        "",
        "data:",
        *_corpus_lines(corpora),
        f"save_model: {double_quoted(model)}",
        *settings,
    ]
    text = "\n".join(lines)
    return f"{text}{_MARK}{_checksum(text.encode())}\n"


def _head(commands: Sequence[str], plan: Plan | None) -> list[str]:
    """Return the comments at the head of a configuration."""
    if plan is not None and plan.gpu:
        on_a_gpu = "-gpu 0 to translate"  # `gpu_ranks` is among the settings
    else:
        on_a_gpu = "-gpu_ranks 0 to train and -gpu 0 to translate"
    if plan is None:
        reason = ["--minutes of `prepare` measures this machine, and plans for that time."]
    else:
        reason = plan_text(plan)
    return [
        "# Written by `onmt-entmax prepare`. Paths are relative to the folder in which it ran.",
        f"# On a GPU, add {on_a_gpu}.",
        *(f"# {line}" for line in reason),
        "#",
        *(f"#   {command}" for command in commands),
    ]


def _corpus_lines(corpora: Mapping[str, CorpusFiles]) -> Iterator[str]:
    """Yield the entry of each corpus under `data:`, as a line of YAML."""
    for name, (source, target, weight) in corpora.items():
        entry = f"path_src: {double_quoted(source)}, path_tgt: {double_quoted(target)}"
        if weight is not None:
            entry += f", weight: {weight}"
        yield f"  {name}: {{{entry}}}"


def _checksum(text: bytes) -> str:
    """Return the checksum of a configuration without its last line, which holds the checksum."""
    return hashlib.sha256(text).hexdigest()[:16]
