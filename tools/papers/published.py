"""Published results, which stand in published.tsv, and how ours are written beside them."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, stdev

Alphas = tuple[float | str, float | str]  # of output (or a loss's name) and attention


def published(table: str) -> dict[Alphas, list[float]]:
    """Return published results by the alphas of output and attention; empty for no such table."""
    path = Path(__file__).with_suffix(".tsv")
    lines = path.read_text(encoding="utf-8").splitlines()
    rows = csv.reader((line for line in lines if not line.startswith("#")), delimiter="\t")

    def alpha(text: str) -> float | str:
        return float(text) if text[:1].isdigit() else text

    return {
        (alpha(output), alpha(attention)): [float(value) for value in values if value]
        for name, output, attention, *values in rows
        if name == table
    }


def spread(values: Sequence[float]) -> str:
    """Return the mean, with the standard deviation of several values."""
    if not values:
        return "-"
    return f"{mean(values):.2f}" + (f" ± {stdev(values):.2f}" if len(values) > 1 else "")
