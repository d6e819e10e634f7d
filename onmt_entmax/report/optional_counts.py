"""Counts that only some summaries have: of samples, constraints and verified certificates."""

from collections.abc import Sequence
from dataclasses import dataclass

from onmt_entmax.search.sampling import Sample
from onmt_entmax.search.verify import Verification


@dataclass
class SampleCounts:
    """Counts of samples, summed over sentences.

    Attributes:
        samples: all of them.
        distinct: how many different ones a sentence has.
        cut: those that are not complete.
    """

    samples: int = 0
    distinct: int = 0
    cut: int = 0

    def add(self, samples: Sequence[Sample]) -> None:
        """Count the samples of a sentence."""
        self.samples += len(samples)
        self.distinct += len({(sample.tokens, sample.complete) for sample in samples})
        self.cut += sum(not sample.complete for sample in samples)


@dataclass
class ConstraintCounts:
    """How probable it is that outputs satisfy their constraints.

    Attributes:
        sentences: those with constraints.
        least: lower bounds of this probability, summed over the sentences.
        most: upper bounds, likewise.
    """

    sentences: int = 0
    least: float = 0.0
    most: float = 0.0

    def add(self, least: float, most: float) -> None:
        """Count a sentence, with the bounds of its probability."""
        self.sentences += 1
        self.least += least
        self.most += most

    def mean_percent(self) -> list[float]:
        """Return the mean lower and upper bound in percent; there is at least one sentence."""
        return [round(100 * total / self.sentences, 2) for total in (self.least, self.most)]


@dataclass
class VerificationCounts:
    """Counts of sentences that were searched again in float64.

    Attributes:
        sentences: all of them.
        disagreements: those whose certificates were not confirmed.
        undecided: those for which the budget ended before that was decided.
    """

    sentences: int = 0
    disagreements: int = 0
    undecided: int = 0

    def add(self, verification: Verification) -> None:
        """Count a sentence."""
        self.sentences += 1
        if verification.agrees is None:
            self.undecided += 1
        elif not verification.agrees:
            self.disagreements += 1
