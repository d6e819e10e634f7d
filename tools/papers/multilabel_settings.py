"""The configuration of the experiments with a multi-label data set."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from onmt_entmax.config import declared, option
from onmt_entmax.rules import Rule, whole
from tools.papers.multilabel_grid import Grid

ALPHA_OF_LOSS = {"logistic": None, "softmax": 1.0, "sparsemax": 2.0, "entmax15": 1.5}
"""Losses that have a name; None: the logistic loss of each label, which is not an entmax loss"""
PUBLISHED = ("scene", "emotions", "birds", "cal500", "reuters")  # data sets of the paper


@dataclass(frozen=True)
class Settings(Grid):
    """The keys of a configuration file: those below, and those of the grid, on the same level."""

    name: str = option("", Rule(str), f"data set; {', '.join(PUBLISHED)} have the paper's figures")
    train: str = option(None, Rule(str), "data: .arff, or else SVMlight", required=True)
    labels: str = option(None, Rule(str), "Mulan's list of labels (XML)", required=True)
    out: str = option(None, Rule(str), "folder for results", required=True)
    seeds: int = option(5, whole(1, 1000), "number of seeds of the folds")
    losses: Sequence[str | float] = option(
        tuple(ALPHA_OF_LOSS), Rule(float, 1, 10**6, names=tuple(ALPHA_OF_LOSS)), "names or alphas"
    )

    def misfits(self) -> Iterator[tuple[str, str]]:
        """Yield the keys whose lists are empty, each with what is wrong."""
        for name, declaration in declared(Settings).items():
            if declaration.many and not getattr(self, name):
                yield name, "must not be empty"
