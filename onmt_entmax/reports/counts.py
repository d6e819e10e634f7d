"""What is proven of how many sentences: the part of a summary that every report has."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, get_args

from onmt_entmax.search.certificate import Level


@dataclass
class Counts:
    """Counts over sentences; count each, then read `as_dict`."""

    sentences: int = 0
    blank: int = 0
    levels: Counter[str] = field(default_factory=Counter)
    single: int = 0  # one string holds all the probability, proven
    several: int = 0  # more than one finished hypothesis
    unfinished: int = 0  # nothing ended within the limits
    impossible: int = 0  # no string is as it was asked for, proven

    def count(self, level: Level, finished: int, listed: bool, only: bool) -> None:
        """Count a sentence that is not blank.

        Args:
            level: of its certificate.
            finished: strings found.
            listed: whether any is listed.
            only: whether it is proven that no other than the first has any probability.
        """
        exhaustive = level == "exhaustive"
        self.sentences += 1
        self.levels[level] += 1
        self.single += only
        self.several += finished > 1
        self.unfinished += not listed and not exhaustive
        self.impossible += not listed and exhaustive

    def percent(self, count: int) -> float:
        """A count in percent of the sentences that are not blank."""
        return round(100 * count / max(self.sentences, 1), 2)

    def as_dict(self) -> dict[str, Any]:
        """Counts, and rates in percent of the sentences that are not blank."""
        return {
            "sentences": self.sentences,
            "blank_lines": self.blank,
            "certificates": {level: self.levels[level] for level in get_args(Level)},
            "exhaustive_percent": self.percent(self.levels["exhaustive"]),
            "argmax_proven_percent": self.percent(self.sentences - self.levels["none"]),
            "single_hypothesis_percent": self.percent(self.single),
            "several_hypotheses_percent": self.percent(self.several),
            "unfinished": self.unfinished,
            "impossible": self.impossible,
        }
