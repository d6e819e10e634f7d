"""Configurations of `config/` in tests: files for them to read, and the commands of their heads."""

import re
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path


def write_corpora(corpora: Iterable[Mapping[str, str]], line: str) -> None:
    """Write the files of entries under `data:`, each of one line."""
    for corpus in corpora:
        for key in ("path_src", "path_tgt"):
            path = Path(corpus[key])
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{line}\n", encoding="utf-8")


def unbroken(head: str) -> str:
    """The comments that begin a configuration, each command on one line."""
    return re.sub(r" \\\n# +", " ", head)


def commands_of(head: str) -> dict[str, list[str]]:
    """The arguments of each script in an `unbroken` head; of one that is called again, the last."""
    return {name: shlex.split(rest) for name, rest in re.findall(r"python (\S+)(.*)", head)}
