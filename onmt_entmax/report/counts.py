"""Counts of sentences by what their certificates prove."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, get_args

from onmt_entmax.data.unknown import UnknownTokens
from onmt_entmax.report.records import Record, is_blank, is_only
from onmt_entmax.search.certificate import Level


@dataclass
class CertificateCounts:
    """Counts of sentences by what is proven about them.

    Attributes:
        sentences: lines that are not blank.
        blank: blank lines.
        levels: sentences by the level of their certificate.
        single: sentences whose support is proven to be a single hypothesis.
        several: sentences with more than one finished hypothesis.
        unfinished: sentences without a hypothesis that finished within the limits.
        impossible: sentences for which it is proven that no output is possible.
        empty: sentences whose first hypothesis has no word.
        abstained: sentences for which the output file has an empty line.
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

    def count(self, level: Level, *, finished: int, best: str | None, only: bool) -> None:
        """Count a sentence that is not blank.

        Args:
            level: level of its certificate.
            finished: number of finished hypotheses.
            best: text of the first hypothesis that is listed; None if none is listed.
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

    def add_record(self, record: Record) -> None:
        """Count the sentence, or blank line, of a report's record."""
        if is_blank(record):
            self.blank += 1
            return
        listed = record["hypotheses"]
        best = listed[0]["text"] if listed else None
        self.count(
            record["certificate"], finished=record["finished"], best=best, only=is_only(record)
        )
        self.abstained += record.get("abstained", False)
        # If the model has languages, the source begins with the one in which a token is unseen.
        language = record["source"].split()[0]
        unseen = {(language, token): number for token, number in record.get("unseen", {}).items()}
        self.source.add(record.get("source_tokens", 0), record.get("unknown", {}), unseen)

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
        """Return problems of most sentences, each with what the user can do about it."""
        if 2 * self.unfinished > self.sentences:
            return {"most sentences have no finished output": "train longer, or raise -max_length"}
        advice = {}
        if 2 * self.empty > self.sentences:
            advice["most outputs are empty"] = (
                "try -length_reward 1 or more, or -min_length 1, or train longer"
            )
        if self.sentences and self.levels["none"] == self.sentences:
            advice["nothing is certified"] = (
                "try -search exact, with a larger -budget if need be, or train longer"
            )
        return advice
