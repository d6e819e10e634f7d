"""The summary of an exactness report: what is proven of its sentences, and what searches cost."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from onmt_entmax.errors import counted
from onmt_entmax.report.advice import advice_on
from onmt_entmax.report.answers import Answer
from onmt_entmax.report.counts import CertificateCounts
from onmt_entmax.report.mbr_counts import MbrCounts
from onmt_entmax.report.optional_counts import ConstraintCounts, VerificationCounts
from onmt_entmax.report.rate_lines import rate_lines
from onmt_entmax.search.certificate import SearchResult


@dataclass
class Summary(CertificateCounts):
    """Counts over the answers of one report, and the cost of their searches.

    Attributes:
        strict: sentences that are exhaustive in the stricter reading, see `Certificate.strict`.
        rows: prefixes that the decoder computed.
        support: next tokens of positive probability, summed over `rows`.
        steps: decoder steps of the best hypotheses.
        attended: source positions of nonzero weight, summed over `steps`.
        verification: counts of sentences that were searched again in float64.
        scored: whether hypotheses are ranked by scores with penalties.
        constraints: probabilities with which outputs satisfy their constraints.
        mbr: decisions by minimum Bayes risk.
        ruled_out: number of sentences without a possible output, by the requests that may have
            excluded all outputs, see `Answer.restricted_by`.
    """

    strict: int = 0
    rows: int = 0
    support: int = 0
    steps: int = 0
    attended: int = 0
    verification: VerificationCounts = field(default_factory=VerificationCounts)
    scored: bool = False
    constraints: ConstraintCounts = field(default_factory=ConstraintCounts)
    mbr: MbrCounts = field(default_factory=MbrCounts)
    ruled_out: Counter[tuple[str, ...]] = field(default_factory=Counter)

    def add(self, answer: Answer) -> None:
        """Count one answer, of a search or of a blank line."""
        if answer.result is None:
            self.blank += 1
            return
        best = answer.hypotheses[0].text if answer.hypotheses else None
        self._add_result(answer.result, best, answer.restricted_by)
        tokens = answer.source_tokens
        self.source.add(tokens.count, tokens.unknown, tokens.unseen)
        self.scored = self.scored or answer.penalties.change_scores
        if answer.abstained:
            self.abstained += 1
        self.steps += len(answer.attended)
        self.attended += sum(answer.attended)
        if answer.mbr is not None:
            self.mbr.add(answer.mbr, answer.hypotheses[0].text)
        if answer.verification is not None:
            self.verification.add(answer.verification)

    def _add_result(
        self, result: SearchResult, best: str | None, restricted_by: tuple[str, ...]
    ) -> None:
        """Count the search of a sentence.

        Args:
            result: result of the search.
            best: text of the first hypothesis; None if none finished.
            restricted_by: requests that may have excluded all outputs, see `Answer`.
        """
        certificate = result.certificate
        self.count(certificate.level, finished=result.finished, best=best, single=result.only)
        if certificate.level == "exhaustive" and best is None:
            self.ruled_out[restricted_by] += 1
        if certificate.level == "exhaustive" and certificate.strict:
            self.strict += 1
        self.rows += result.rows
        self.support += result.support
        if certificate.satisfied is not None:
            self.constraints.add(*certificate.satisfied)

    def as_dict(self) -> dict[str, Any]:
        """Return counts, and rates in percent of the sentences that are not blank."""
        summary = super().as_dict() | {
            "strict_exhaustive_percent": self.percent(self.strict),
            "mean_output_support": round(self.support / max(self.rows, 1), 3),
            "decoder_rows_per_sentence": round(self.rows / max(self.sentences, 1), 2),
        }
        if self.steps:
            summary["mean_attention_support"] = round(self.attended / self.steps, 3)
        summary |= self.constraints.as_dict()
        if self.mbr.levels:
            summary |= self.mbr.as_dict()
        return summary | self.verification.as_dict()

    def text(self) -> str:
        """Return the summary as lines of text."""
        best = "highest scored" if self.scored else "most probable"
        lines = [self._numbers(), *rate_lines(self.as_dict(), best)]
        lines += [f"{problem}: {advice}" for problem, advice in advice_on(self).items()]
        return "\n".join(lines)

    def _numbers(self) -> str:
        """Return the number of sentences, and how many of them are out of the ordinary."""
        numbers = [counted(self.sentences, "sentence")]
        if self.blank:
            numbers.append(counted(self.blank, "blank line"))
        exceptions = [
            (self.unfinished, "without a finished output"),
            *((number, _no_output(options)) for options, number in self.ruled_out.items()),
            (self.empty, "whose best output is empty"),
            (self.abstained, "abstained (an empty line)"),
        ]
        numbers += [f"{number} {what}" for number, what in exceptions if number]
        return ", ".join(filter(None, [*numbers, self.verification.text()]))


def _no_output(options: tuple[str, ...]) -> str:
    """Return why sentences have no possible output, given the options that restrict outputs."""
    if options:
        return f"without a possible output under {' and '.join(options)}"
    return (
        "without a possible output (the model gives all probability to start and padding symbols)"
    )
