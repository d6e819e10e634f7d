"""The summary of a report of samples, which have no certificates."""

from dataclasses import dataclass, field
from typing import Any

from onmt_entmax.data.unknown import UnknownTokens
from onmt_entmax.errors import counted
from onmt_entmax.report.answers import Answer


@dataclass
class SampleSummary:
    """Counts over the answers of one report of samples.

    Attributes:
        sentences: lines that are not blank.
        blank: blank lines.
        impossible: sentences without a sample: the model excludes their prefix.
        samples: samples of all sentences.
        distinct: sum over sentences of the number of different samples.
        cut: samples that the length limit cut.
        source: counts of source tokens, and of those that training never saw.
    """

    sentences: int = 0
    blank: int = 0
    impossible: int = 0
    samples: int = 0
    distinct: int = 0
    cut: int = 0
    source: UnknownTokens = field(default_factory=UnknownTokens)

    def add(self, answer: Answer) -> None:
        """Count one answer, of samples or of a blank line."""
        if not answer.source.strip():
            self.blank += 1
            return
        assert answer.samples is not None, "the answer of a search"
        samples = [drawn.sample for drawn in answer.samples]
        self.sentences += 1
        if not samples:
            self.impossible += 1
        self.samples += len(samples)
        self.distinct += len({(sample.tokens, sample.complete) for sample in samples})
        self.cut += sum(not sample.complete for sample in samples)
        tokens = answer.source_tokens
        self.source.add(tokens.count, tokens.unknown, tokens.unseen)

    def as_dict(self) -> dict[str, Any]:
        """Return the counts for JSON."""
        return {
            "sentences": self.sentences,
            "blank_lines": self.blank,
            "impossible": self.impossible,
            "samples": self.samples,
            "distinct": self.distinct,
            "cut": self.cut,
            **self.source.as_dict(),
        }

    def text(self) -> str:
        """Return the summary as a line of text."""
        sentences = counted(self.sentences, "sentence")
        if self.impossible:
            sentences += f", {self.impossible} whose prefix is excluded"
        return (
            f"{sentences}, {counted(self.samples, 'sample')} "
            f"({self.distinct} different in their sentence), {self.cut} cut by the length limit"
        )
