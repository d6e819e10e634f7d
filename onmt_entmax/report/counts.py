"""Counts of sentences by what their certificates prove."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, get_args

from onmt_entmax.data.token_names import UnseenToken
from onmt_entmax.data.unknown import UnknownTokens
from onmt_entmax.report.records import Record, has_single_hypothesis, is_blank
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
        abstained: sentences for which `translate -abstain` writes an empty line.
        source: counts of source tokens, and of those that training never saw.
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

    def count(self, level: Level, *, finished: int, best: str | None, single: bool) -> None:
        """Count a sentence that is not blank.

        Args:
            level: level of its certificate.
            finished: number of finished hypotheses.
            best: text of the first hypothesis that is listed; None if none is listed.
            single: whether the support is proven to be a single hypothesis.
        """
        self.sentences += 1
        self.levels[level] += 1
        if single:
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
        hypotheses = record["hypotheses"]
        self.count(
            record["certificate"],
            finished=record["finished"],
            best=hypotheses[0]["text"] if hypotheses else None,
            single=has_single_hypothesis(record),
        )
        if record.get("abstained", False):
            self.abstained += 1
        self.source.add(
            record.get("source_tokens", 0), record.get("unknown", {}), _unseen_tokens(record)
        )

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


def _unseen_tokens(record: Record) -> dict[UnseenToken, int]:
    """Return how often each source token occurs that training did not see in its language."""
    if "unseen" not in record:
        return {}
    # Only models with languages record what training saw, and their sources begin with a language.
    language = record["source"].split()[0]
    return {(language, token): count for token, count in record["unseen"].items()}
