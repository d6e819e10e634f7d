"""Sums of losses and counts over updates or batches, and their averages over target tokens."""

from dataclasses import dataclass


@dataclass
class Sums:
    """Sums over target tokens, without padding; those of one batch are an `OutputLoss`.

    All are floats, as they come from tensors and may be totals of several processes.

    Attributes:
        loss: sum of the losses, in nats.
        tokens: number of target tokens.
        correct: number of target tokens that have the largest score.
        support: sum over tokens of the number of nonzero probabilities.
    """

    loss: float = 0.0
    tokens: float = 0.0
    correct: float = 0.0
    support: float = 0.0

    def add(self, *, loss: float, tokens: float, correct: float, support: float) -> None:
        """Add the sums of an update or a batch; see the attributes."""
        self.loss += loss
        self.tokens += tokens
        self.correct += correct
        self.support += support

    def averages(self) -> dict[str, float]:
        """Return averages over target tokens, under their names in logs and reports.

        They are `loss` (nats per token), `token_accuracy` (percent) and `support` (nonzero
        probabilities per token). Without tokens, as if all updates since the last line of a log
        were skipped, all are 0.
        """
        tokens = max(self.tokens, 1.0)
        return {
            "loss": self.loss / tokens,
            "token_accuracy": 100 * self.correct / tokens,
            "support": self.support / tokens,
        }
