"""Tests of `config/`: corpora and networks of a YAML file, and the commands in its comments."""

import re
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path

import torch

from onmt_entmax.data.vocabulary import TARGET_SPECIALS, Vocabularies, Vocabulary
from onmt_entmax.model import ModelConfig, build_model


def write_corpora(corpora: Iterable[Mapping[str, str]], line: str) -> None:
    """Write the files of the entries under `data:`, each with one line."""
    for corpus in corpora:
        for key in ("path_src", "path_tgt"):
            path = Path(corpus[key])
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{line}\n", encoding="utf-8")


def build_without_weights(config: ModelConfig) -> None:
    """Build a network, on the device that has neither memory nor random numbers."""
    words = Vocabulary(tuple(map(str, TARGET_SPECIALS)))
    with torch.device("meta"):
        build_model(config, Vocabularies(words, words))


def unbroken(head: str) -> str:
    """Return the first comments of a configuration, with each command on one line."""
    return re.sub(r" \\\n# +", " ", head)


def commands_of(head: str) -> dict[str, list[str]]:
    """Return the arguments of the last call of each command in an `unbroken` head."""
    return {name: shlex.split(rest) for name, rest in re.findall(r"onmt-entmax (\S+)(.*)", head)}
