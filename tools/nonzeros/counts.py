"""Counting nonzeros step by step, and what is said of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from onmt_entmax.text.vocabulary import TARGET_SPECIALS

QUANTILES = (5, 25, 50, 75, 95)
LAST_POSITION = 30  # of targets; later ones are counted together
RANKS = (10, 100, 1000, 10_000)  # upper ends of the classes of frequency
SPECIALS = len(TARGET_SPECIALS)
UNKNOWN, END = "unknown", "end"


@dataclass
class Counts:
    """Nonzeros at all steps of one model, of attention or of output."""

    values: list[int] = field(default_factory=list)
    by_position: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    by_rank: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))

    def add(self, values: Sequence[int], targets: Sequence[int], end: int) -> None:
        """Take in one sentence.

        Args:
            values: nonzeros at each step.
            targets: the token that was taken at each step.
            end: id of the end symbol.
        """
        self.values += values
        for position, (value, token) in enumerate(zip(values, targets, strict=True), 1):
            self.by_position[min(position, LAST_POSITION)].append(value)
            self.by_rank[rank_class(token, end)].append(value)

    def summary(self) -> dict[str, Any]:
        """The figures: means and shares are over steps, `at_most` says how many of them have so
        many nonzeros or fewer."""
        values = np.array(self.values)
        distinct, counts = np.unique(values, return_counts=True)
        shares = counts.cumsum() / len(values)
        return {
            "steps": len(values),
            "mean": float(values.mean()),
            "share_of_one": float((values == 1).mean()),
            "quantiles": {str(q): float(np.percentile(values, q)) for q in QUANTILES},
            "least": int(values.min()),
            "most": int(values.max()),
            "at_most": dict(zip(map(str, distinct.tolist()), shares.tolist(), strict=True)),
            "by_position": {str(p): _cell(self.by_position[p]) for p in sorted(self.by_position)},
            "by_rank": {
                name: _cell(self.by_rank[name]) for name in sorted(self.by_rank, key=_order)
            },
        }


def _cell(values: Sequence[int]) -> dict[str, float]:
    return {"steps": len(values), "mean": float(np.mean(values))}


def rank_class(token: int, end: int) -> str:
    """The class of frequency of a token, by its place in the vocabulary: "1-10", "11-100", ..."""
    if token == end:
        return END
    if token < SPECIALS:
        return UNKNOWN
    rank, low = token - SPECIALS + 1, 1
    for high in RANKS:
        if rank <= high:
            return f"{low}-{high}"
        low = high + 1
    return f"{low}-"


def _order(name: str) -> int:
    """Frequent classes first, then unknown tokens, then the end."""
    last = {UNKNOWN: 10**9, END: 10**9 + 1}
    return last[name] if name in last else int(name.split("-")[0])
