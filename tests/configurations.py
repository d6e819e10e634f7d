"""Tests of `config/`: corpora and networks of a YAML file, and the commands in its comments."""

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
import yaml

from onmt_entmax.cli import prepare_mt
from onmt_entmax.data.vocabulary import TARGET_SPECIALS, Vocabularies, Vocabulary
from onmt_entmax.model import build_model
from onmt_entmax.network import ModelConfig

KEYS = ("path_src", "path_tgt")


def write_corpora(corpora: Iterable[Mapping[str, str]], line: str) -> None:
    """Write the files of the entries under `data:`, each with one line."""
    for corpus in corpora:
        for key in KEYS:
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


def check_prepared(words: Sequence[str], options: Mapping[str, Any]) -> None:
    """Check that the options name the files and subwords that a call of `prepare` makes.

    Args:
        words: arguments of `prepare`, of a corpus or of files.
        options: of the training, in the one direction or the other.
    """
    given = prepare_mt.parse_arguments(words)
    corpus = prepare_mt.known(given)
    languages = tuple(given.languages or corpus.languages)
    plan = prepare_mt.plan_of(given, corpus)
    models = dict(zip(languages, prepare_mt.model_paths(given.out, plan, languages), strict=True))
    directions = [
        {
            "data": [
                {key: f"{given.out}/{part}.{side}" for key, side in zip(KEYS, sides, strict=True)}
                for part in ("train", "val")
            ],
            **yaml.safe_load(prepare_mt.yaml_lines(plan, [models[side] for side in sides])),
        }
        for sides in (languages, languages[::-1])
    ]
    found = {key: options[key] for key in directions[0]} | {"data": [*options["data"].values()]}
    assert found in directions
