"""The configuration of a multi-label data set, and its data files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from onmt_entmax.config import declared, option
from onmt_entmax.rules import Rule, whole
from tools.papers.multilabel_data import Examples, read_examples
from tools.papers.multilabel_loss import Grid

NAMED = {"logistic": None, "softmax": 1.0, "sparsemax": 2.0, "entmax15": 1.5}  # alphas of losses


@dataclass(frozen=True)
class Settings(Grid):
    """The configuration of a data set.

    Attributes:
        name: of the data set; those of the paper have its figures beside ours.
        train: data file.
        labels: Mulan's list of labels.
        out: folder for results.
        seeds: number of seeds of the folds.
        losses: names or alphas.
    """

    name: str = option("", Rule(str))
    train: str = option(None, Rule(str), required=True)
    labels: str = option(None, Rule(str), required=True)
    out: str = option(None, Rule(str), required=True)
    seeds: int = option(5, whole(1, 1000))
    losses: Sequence[str | float] = option(tuple(NAMED), Rule(float, 1, 10**6, names=tuple(NAMED)))

    def misfits(self) -> Iterator[tuple[str, str]]:
        """Yield the lists that are empty."""
        for name in declared(Settings):
            if getattr(self, name) in ([], ()):
                yield name, "must not be empty"


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
