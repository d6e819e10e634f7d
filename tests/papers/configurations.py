"""The files of `config/`, and stand-ins for what they need: corpora of a line, no weights.

Configurations of trainings have `data`, matrices have `cells`; see `files_with`.
"""

import re
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path

import torch

from onmt_entmax.config import ModelConfig
from onmt_entmax.data.vocabulary import TARGET_SPECIALS, Vocabularies, Vocabulary
from onmt_entmax.model import build_model
from tests.commands import ROOT

CONFIG = ROOT / "config"
LINE = "lang=english +V d r a w"
"""The only line of each corpus that is written here, as source and as target."""
KEYS = ("path_src", "path_tgt")


def name_of(path: Path) -> str:
    """Return the path of a configuration below `config/`, without its ending."""
    return str(path.relative_to(CONFIG).with_suffix(""))


def files_with(key: str) -> list[Path]:
    """Return the configurations that have a key, such as `data` of trainings."""
    pattern = re.compile(rf"^{key}:", re.MULTILINE)
    paths = sorted(CONFIG.glob("**/*.yaml"))
    return [path for path in paths if pattern.search(path.read_text(encoding="utf-8"))]


def write_corpora(corpora: Iterable[Mapping[str, str]]) -> None:
    """Write the files of the entries under `data:`, each with one line."""
    for corpus in corpora:
        for key in KEYS:
            path = Path(corpus[key])
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{LINE}\n", encoding="utf-8")


def build_without_weights(config: ModelConfig) -> torch.nn.Module:
    """Build a network, on the device that has neither memory nor random numbers."""
    words = Vocabulary(tuple(map(str, TARGET_SPECIALS)))
    with torch.device("meta"):
        return build_model(config, Vocabularies(words, words))


def commands_of(path: Path) -> dict[str, list[str]]:
    """Return the arguments of the last call of each command in the head of a configuration.

    A command is called as `onmt-entmax NAME` or as `python -m tools.papers.NAME`. The result is
    `{"train": ["-config", "config/x.yaml"]}` of the comment

        # onmt-entmax train \\
        #   -config config/x.yaml
    """
    head = path.read_text(encoding="utf-8").partition("\n\n")[0]
    unbroken = re.sub(r" \\\n# +", " ", head)
    calls = re.findall(r"(?:onmt-entmax |python -m tools\.papers\.)(\S+)(.*)", unbroken)
    return {name: shlex.split(rest) for name, rest in calls}
