"""Counts of sentences by what their certificates prove."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, get_args

from onmt_entmax.data.unknown import UnknownTokens
from onmt_entmax.search.certificate import Level

LABEL_WIDTH = 43
"""Characters of the longest label in a summary"""


@dataclass
class CertificateCounts:
    """Counts of sentences by what is proven about them.

    Attributes:
        sentences: all that are not blank.
        blank: lines that are.
        levels: sentences by the level of their certificate.
        single: it is proven that the support is a single hypothesis.
        several: more than one hypothesis finished.
        unfinished: no hypothesis finished within the limits.
        impossible: it is proven that no output is possible.
        empty: the first hypothesis has no word.
        abstained: the output file has an empty line in place of an output.
        source: tokens of the sources.
    """

    sentences: int = 0
    blank: int = 0
    levels: Counter[str] = field(default_factory=Counter)
    single: int = 0
    several: int = 0
    unfinished: int = 0
    impossible: int = 0
    empty: int = 0
    abstained: int = 0
    source: UnknownTokens = field(default_factory=UnknownTokens)

    def count(self, level: Level, finished: int, best: str | None, only: bool) -> None:
        """Count a sentence that is not blank.

        Args:
            level: of its certificate.
            finished: number of finished hypotheses.
            best: text of the first one that is listed; None if none is.
            only: whether the support is proven to be a single hypothesis.
        """
        self.sentences += 1
        self.levels[level] += 1
        if only:
            self.single += 1
        if finished > 1:
            self.several += 1
        if best is not None:
            if not best.strip():
                self.empty += 1
        elif level == "exhaustive":
            self.impossible += 1
        else:
            self.unfinished += 1

    def percent(self, count: int) -> float:
        """Return a count in percent of the sentences that are not blank."""
        return round(100 * count / max(self.sentences, 1), 2)

    def as_dict(self) -> dict[str, Any]:
        """Return counts, and rates in percent of the sentences that are not blank."""
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
            "empty": self.empty,
            "abstained": self.abstained,
            **self.source.as_dict(),
        }

    def advice(self) -> dict[str, str]:
        """Return what makes most outputs useless, if anything does, and what to do about each."""
        if 2 * self.unfinished > self.sentences:
            return {"most sentences have no finished output": "train longer, or raise -max_length"}
        advice = {}
        if 2 * self.empty > self.sentences:
            advice["most outputs are empty"] = (
                "try -length_reward 1 or -min_length 1, or train longer"
            )
        if self.sentences and self.levels["none"] == self.sentences:
            advice["nothing is certified"] = (
                "try -search exact, with a larger -budget if need be, or train longer"
            )
        return advice


def rate_lines(rates: Mapping[str, Any], best: str = "most probable") -> list[str]:
    """Return the rates of a summary as aligned lines; `best` names the first hypotheses."""
    # By label: the key of the summary, and its unit.
    described = {
        "every possible output found (exhaustive)": ("exhaustive_percent", "%"),
        f"{best} output proven (or the above)": ("argmax_proven_percent", "%"),
        "minimum Bayes risk proven": ("mbr_proven_percent", "%"),
        "not the most probable output": ("mbr_other_percent", "%"),
        "only one output possible": ("single_hypothesis_percent", "%"),
        "more than one output found": ("several_hypotheses_percent", "%"),
        "source tokens outside the vocabulary": ("unknown_percent", "%"),
        "next tokens of nonzero probability": ("mean_output_support", "per prefix searched"),
        "source positions of nonzero attention": ("mean_attention_support", "per step"),
    }
    return [
        f"  {label:{LABEL_WIDTH}} {rates[name]:6.2f} {unit}"
        for label, (name, unit) in described.items()
        if name in rates and (name != "unknown_percent" or rates["unknown_tokens"])
    ]
