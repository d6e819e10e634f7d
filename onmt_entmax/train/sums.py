"""Sums of losses and counts over updates or batches, and their averages."""

from dataclasses import dataclass


@dataclass
class Sums:
    """Sums over target tokens; see `OutputLoss`."""

    loss: float = 0.0
    tokens: float = 0.0
    correct: float = 0.0
    support: float = 0.0

    def add(self, *, loss: float, tokens: float, correct: float, support: float) -> None:
        """Add the sums of an update or a batch over its target tokens."""
        self.loss += loss
        self.tokens += tokens
        self.correct += correct
        self.support += support

    def averages(self) -> dict[str, float]:
        """Return averages over target tokens by name; the token accuracy in percent."""
        tokens = max(self.tokens, 1.0)
        return {
            "loss": self.loss / tokens,
            "token_accuracy": 100 * self.correct / tokens,
            "support": self.support / tokens,
        }
