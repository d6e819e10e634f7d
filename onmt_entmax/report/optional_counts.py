"""Counts that a summary leaves out if no sentence has them: of constraints and verifications."""

from dataclasses import dataclass
from typing import Any

from onmt_entmax.search.verify import Verification


@dataclass
class ConstraintCounts:
    """Sums of the probabilities with which outputs satisfy their constraints.

    Attributes:
        sentences: number of sentences with constraints.
        least: sum of the lower bounds of this probability over the sentences.
        most: sum of its upper bounds.
    """

    sentences: int = 0
    least: float = 0.0
    most: float = 0.0

    def add(self, least: float, most: float) -> None:
        """Count a sentence, with a lower and an upper bound of its probability."""
        self.sentences += 1
        self.least += least
        self.most += most

    def as_dict(self) -> dict[str, Any]:
        """Return the count, and the mean bounds in percent; nothing without sentences."""
        if not self.sentences:
            return {}
        bounds = [round(100 * total / self.sentences, 2) for total in (self.least, self.most)]
        return {"constrained": self.sentences, "satisfied_percent": bounds}


@dataclass
class VerificationCounts:
    """Counts of sentences that were searched again in float64.

    Attributes:
        sentences: number of these sentences.
        disagreements: number of certificates that the second search contradicts.
        undecided: number of other certificates, which the second search neither confirmed nor
            contradicted before its budget ended.
    """

    sentences: int = 0
    disagreements: int = 0
    undecided: int = 0

    def add(self, verification: Verification) -> None:
        """Count a sentence, as confirmed, contradicted or undecided."""
        self.sentences += 1
        if verification.agrees is None:
            self.undecided += 1
        elif not verification.agrees:
            self.disagreements += 1

    def as_dict(self) -> dict[str, int]:
        """Return the counts; nothing without sentences.

        Undecided certificates are counted only if there are any.
        """
        if not self.sentences:
            return {}
        counts = {"verified": self.sentences, "disagreements": self.disagreements}
        return counts | ({"undecided": self.undecided} if self.undecided else {})

    def text(self) -> str:
        """Return the counts in words; nothing without sentences."""
        if not self.sentences:
            return ""
        numbers = [
            f"{self.sentences} recomputed in float64",
            f"{self.disagreements} not as certified",
        ]
        if self.undecided:
            numbers.append(f"{self.undecided} undecided")
        return ", ".join(numbers)
