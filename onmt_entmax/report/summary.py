"""The summary of an exactness report."""

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

from onmt_entmax.errors import counted
from onmt_entmax.report.answers import Answer, Drawn, SourceTokens
from onmt_entmax.report.counts import LABEL_WIDTH, CertificateCounts, rate_lines
from onmt_entmax.report.mbr import MbrCounts
from onmt_entmax.report.optional_counts import ConstraintCounts, SampleCounts, VerificationCounts
from onmt_entmax.search.certificate import SearchResult


@dataclass
class Summary(CertificateCounts):
    """Counts over the answers of one report, and the cost of their searches.

    The sentences of a report were either searched or sampled.

    Attributes:
        strict: sentences that are exhaustive in the stricter reading, see `Certificate.strict`.
        rows: that the decoder computed.
        support: next tokens of positive probability, summed over these rows.
        steps: of the best hypotheses.
        attended: source positions of nonzero weight, summed over these steps.
        verification: of sentences that were searched again in float64.
        scored: whether hypotheses are ranked by scores with penalties.
        constraints: of sentences whose outputs must satisfy something.
        mbr: decisions by minimum Bayes risk.
        ruled_out: sentences without a possible output, by what the user asked of the outputs.
        sampled: whether sentences were sampled.
        drawn: their samples.
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
    sampled: bool = False
    drawn: SampleCounts = field(default_factory=SampleCounts)

    def add(self, answer: Answer) -> None:
        """Count one answer."""
        self.sampled = self.sampled or answer.samples is not None
        if answer.samples is not None and answer.source.strip():
            self._add_samples(answer, answer.samples)
        elif answer.result is None:
            self.blank += 1
        else:
            self._add_search(answer, answer.result)

    def _add_samples(self, answer: Answer, samples: tuple[Drawn, ...]) -> None:
        """Count the samples of a sentence."""
        self.sentences += 1
        if not samples:
            self.impossible += 1
        self.drawn.add([drawn.sample for drawn in samples])
        self._add_source(answer.source_tokens)

    def _add_source(self, tokens: SourceTokens) -> None:
        """Count the tokens of a source."""
        self.source.add(tokens.count, tokens.unknown, tokens.unseen)

    def _add_search(self, answer: Answer, result: SearchResult) -> None:
        """Count the search of a sentence, and what was made of its hypotheses."""
        self.scored = self.scored or answer.penalties.change_scores
        certificate = result.certificate
        best = answer.hypotheses[0].text if answer.hypotheses else None
        self.count(certificate.level, result.finished, best, result.only)
        if certificate.level == "exhaustive":
            if best is None:
                self.ruled_out[answer.restricted_by] += 1
            if certificate.strict:
                self.strict += 1
        if answer.abstained:
            self.abstained += 1
        self._add_source(answer.source_tokens)
        self.rows += result.rows
        self.support += result.support
        if certificate.satisfied is not None:
            self.constraints.add(*certificate.satisfied)
        if answer.mbr is not None:
            self.mbr.add(answer.mbr, answer.hypotheses[0].text)
        self.steps += len(answer.attended)
        self.attended += sum(answer.attended)
        if answer.verification is not None:
            self.verification.add(answer.verification)

    def as_dict(self) -> dict[str, Any]:
        """Return counts, and rates in percent of the sentences that are not blank."""
        if self.sampled:
            counts = {"sentences": self.sentences, "blank_lines": self.blank}
            return counts | asdict(self.drawn) | self.source.as_dict()
        summary = super().as_dict() | {
            "strict_exhaustive_percent": self.percent(self.strict),
            "mean_output_support": round(self.support / max(self.rows, 1), 3),
            "decoder_rows_per_sentence": round(self.rows / max(self.sentences, 1), 2),
        }
        if self.steps:
            summary["mean_attention_support"] = round(self.attended / self.steps, 3)
        if self.constraints.sentences:
            summary["constrained"] = self.constraints.sentences
            summary["satisfied_percent"] = self.constraints.mean_percent()
        if self.mbr.levels:
            summary |= self.mbr.as_dict()
        if self.verification.sentences:
            summary["verified"] = self.verification.sentences
            summary["disagreements"] = self.verification.disagreements
        if self.verification.undecided:
            summary["undecided"] = self.verification.undecided
        return summary

    def text(self) -> str:
        """Return the summary as lines of text."""
        if self.sampled:
            return self._samples_text()
        rates = self.as_dict()
        best = "highest scored" if self.scored else "most probable"
        lines = [self._numbers(), *rate_lines(rates, best)]
        if "satisfied_percent" in rates:
            label = "mean probability that the constraints hold"
            least, most = (f"{percent:.2f}" for percent in rates["satisfied_percent"])
            until = f" to {most} %" if most != least else ""
            lines.append(f"  {label:{LABEL_WIDTH}} {least:>6} %{until}")
        lines += [f"{fact}: {advice}" for fact, advice in self.advice().items()]
        return "\n".join(lines)

    def _samples_text(self) -> str:
        """Return the numbers of samples."""
        sentences = counted(self.sentences, "sentence")
        if self.impossible:
            sentences += f", {self.impossible} whose prefix is excluded"
        return (
            f"{sentences}, {counted(self.drawn.samples, 'sample')} "
            f"({self.drawn.distinct} different in their sentence), "
            f"{self.drawn.cut} cut by the length limit"
        )

    def _numbers(self) -> str:
        """Return the number of sentences, and of those of which there is something to say."""
        verified = self.verification
        recomputed = f"recomputed in float64, {verified.disagreements} not as certified"
        rare = [
            (self.unfinished, "without a finished output"),
            *((number, _no_output(options)) for options, number in self.ruled_out.items()),
            (self.empty, "whose best output is empty"),
            (self.abstained, "abstained (an empty line)"),
            (verified.sentences, recomputed),
            (verified.undecided, "of these undecided"),
        ]
        numbers = [counted(self.sentences, "sentence")]
        if self.blank:
            numbers.append(counted(self.blank, "blank line"))
        numbers += [f"{number} {what}" for number, what in rare if number]
        return ", ".join(numbers)


def _no_output(options: tuple[str, ...]) -> str:
    """Return why sentences have no possible output, given the options that restrict outputs."""
    if options:
        return f"without a possible output under {' and '.join(options)}"
    return (
        "without a possible output (the model gives all probability to start and padding symbols)"
    )
