"""The configuration of a multi-label data set, and its data files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from onmt_entmax.config import declared, option
from onmt_entmax.rules import Rule, whole
from tools.papers.multilabel_data import Examples, read_examples
from tools.papers.multilabel_grid import Grid

NAMED = {"logistic": None, "softmax": 1.0, "sparsemax": 2.0, "entmax15": 1.5}  # alphas of losses
PUBLISHED = ("scene", "emotions", "birds", "cal500", "reuters")  # data sets of the paper


@dataclass(frozen=True)
class Settings(Grid):
    """The configuration of a data set, whose file has the keys of the grid beside these."""

    name: str = option("", Rule(str), f"data set; {', '.join(PUBLISHED)} have the paper's figures")
    train: str = option(None, Rule(str), "data: .arff, or else SVMlight", required=True)
    labels: str = option(None, Rule(str), "Mulan's list of labels (XML)", required=True)
    out: str = option(None, Rule(str), "folder for results", required=True)
    seeds: int = option(5, whole(1, 1000), "number of seeds of the folds")
    losses: Sequence[str | float] = option(
        tuple(NAMED), Rule(float, 1, 10**6, names=tuple(NAMED)), "names or alphas"
    )

    def misfits(self) -> Iterator[tuple[str, str]]:
        """Yield the lists that are empty."""
        for name in declared(Settings):
            if getattr(self, name) in ([], ()):
                yield name, "must not be empty"


def described_keys() -> str:
    """Return a line for each key of a configuration: its meaning and its default."""
    lines = []
    for name, declaration in declared(Settings).items():
        values = declaration.default if declaration.many else [declaration.default]
        default = " ".join(str(value).lower() for value in values)  # as YAML writes true
        note = f" (default {default})" if default and not declaration.required else ""
        lines.append(f"    {name:<21}{declaration.help}{note}")
    return "\n".join(lines)


def read_data(settings: Settings, test: Path | None) -> tuple[Examples, Examples | None]:
    """Return the rows of the training file, and those of a test file, if there is one.

    Raises:
        UserError: a data file cannot be used.
    """
    labels = Path(settings.labels)
    training = read_examples(Path(settings.train), labels)
    if test is None:
        return training, None
    return training, read_examples(test, labels, features=training.features.shape[1])
