"""Published results: figures of published.tsv by alphas, and others."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import NamedTuple


class Certificates(NamedTuple):
    """Figures of Peters, Niculae and Martins (2019), section 4.1, in percent.

    Attributes:
        exhaustive: share of the validation words for which the paper's best configuration found
            every possible form.
        single: share of the validation words with a single possible form.
        submitted: test accuracy of the best system that was submitted to the shared task.
    """

    exhaustive: int
    single: int
    submitted: float


# Figures for each setting of the shared task.
CERTIFICATES = {
    "high": Certificates(exhaustive=87, single=81, submitted=96.0),
    "medium": Certificates(exhaustive=79, single=66, submitted=86.64),
}
# Pairs of languages of Correia, Niculae and Martins (2019), Table 1, whose models are Transformers.
TRANSFORMERS = ("de-en", "ja-en", "ro-en", "en-de")

TABLE3_PAIR = "de-en"  # of Table 3 of Peters et al. (2019)


class Alphas(NamedTuple):
    """The alphas of a model, or names for what is not a number.

    Attributes:
        output: alpha of the output, or the name of a loss.
        attention: alpha of the attention to the source, "learned", or "" without attention.
    """

    output: float | str
    attention: float | str


class Bleu(NamedTuple):
    """The BLEU of several runs of a model: mean and standard deviation."""

    mean: float
    deviation: float


class Nonzeros(NamedTuple):
    """Mean numbers of nonzeros at a decoding step.

    Attributes:
        attention: number of attended source positions.
        output: number of possible target tokens.
    """

    attention: float
    output: float


def published(table: str) -> dict[Alphas, list[float]]:
    """Return published results by the alphas of output and attention; empty for no such table."""
    path = Path(__file__).with_suffix(".tsv")
    lines = path.read_text(encoding="utf-8").splitlines()
    rows = csv.reader((line for line in lines if not line.startswith("#")), delimiter="\t")
    return {
        Alphas(_alpha(output), _alpha(attention)): [float(value) for value in values if value]
        for name, output, attention, *values in rows
        if name == table
    }


def published_bleu(pair: str) -> dict[Alphas, Bleu]:
    """Return the figures of Table 2 of Peters et al. (2019) for a pair of languages."""
    return {alphas: Bleu(*values) for alphas, values in published(f"table2 {pair}").items()}


def published_nonzeros(pair: str) -> dict[Alphas, Nonzeros]:
    """Return the figures of Table 3 of Peters et al. (2019), which is about one pair."""
    if pair != TABLE3_PAIR:
        return {}
    return {alphas: Nonzeros(*values) for alphas, values in published("table3").items()}


def _alpha(text: str) -> float | str:
    """Return an alpha as a number; the name of a loss stays text."""
    return float(text) if text[:1].isdigit() else text
