"""Published results, which stand in published.tsv, and how ours are written beside them."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, stdev

# Peters, Niculae and Martins (2019), section 4.1, validation set, best configuration: percent of
# the words for which every possible form was found, and of those with a single form; and the best
# submitted system.
CERTIFICATES = {"high": (87, 81, "96.00"), "medium": (79, 66, "86.64")}
# Pairs of languages of Correia, Niculae and Martins (2019), Table 1, whose models are Transformers.
TRANSFORMERS = ("de-en", "ja-en", "ro-en", "en-de")

Alphas = tuple[float | str, float | str]  # of output (or a loss's name) and attention


def published(table: str) -> dict[Alphas, list[float]]:
    """Return published results by the alphas of output and attention; empty for no such table."""
    path = Path(__file__).with_suffix(".tsv")
    lines = path.read_text(encoding="utf-8").splitlines()
    rows = csv.reader((line for line in lines if not line.startswith("#")), delimiter="\t")
    return {
        (_alpha(output), _alpha(attention)): [float(value) for value in values if value]
        for name, output, attention, *values in rows
        if name == table
    }


def _alpha(text: str) -> float | str:
    """Return an alpha as a number; the name of a loss stays text."""
    return float(text) if text[:1].isdigit() else text


def spread(values: Sequence[float]) -> str:
    """Return the mean, with the standard deviation of several values."""
    if not values:
        return "-"
    return f"{mean(values):.2f}" + (f" ± {stdev(values):.2f}" if len(values) > 1 else "")
