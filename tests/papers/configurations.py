"""The configurations in `config/`: their commands, tiny corpora and networks without weights."""

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
TEXT_KEYS = ("path_src", "path_tgt")  # of a corpus in a configuration


def name_of(path: Path) -> str:
    """Return the path of a configuration below `config/`, without its ending."""
    return str(path.relative_to(CONFIG).with_suffix(""))


def files_with(key: str) -> list[Path]:
    """Return the configurations with a key: trainings have `data`, matrices have `cells`."""
    pattern = re.compile(rf"^{key}:", re.MULTILINE)
    paths = sorted(CONFIG.glob("**/*.yaml"))
    return [path for path in paths if pattern.search(path.read_text(encoding="utf-8"))]


def write_corpora(corpora: Iterable[Mapping[str, str]]) -> None:
    """Write the texts of corpora, which are entries under `data:`, with one line each.

    The line is a source of inflection, which any other task can read, too.
    """
    for corpus in corpora:
        for key in TEXT_KEYS:
            path = Path(corpus[key])
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("lang=english +V d r a w\n", encoding="utf-8")


def build_without_weights(config: ModelConfig) -> torch.nn.Module:
    """Build a network of a configuration, whose weights take no memory.

    Its vocabulary has only special tokens.
    """
    words = Vocabulary(tuple(map(str, TARGET_SPECIALS)))
    with torch.device("meta"):
        return build_model(config, Vocabularies(words, words))


def commands_of(path: Path) -> dict[str, list[str]]:
    """Return the commands in the comment at the head of a configuration, by their names.

    A command is called as `onmt-entmax NAME` or as `python -m tools.papers.NAME`; if it is called
    several times, the last call counts. The commands of

        # onmt-entmax train \\
        #   -config config/x.yaml

    are `{"train": ["-config", "config/x.yaml"]}`.
    """
    head = path.read_text(encoding="utf-8").partition("\n\n")[0]
    joined_lines = re.sub(r" \\\n# +", " ", head)
    calls = re.findall(r"(?:onmt-entmax |python -m tools\.papers\.)(\S+)(.*)", joined_lines)
    return {name: shlex.split(arguments) for name, arguments in calls}
