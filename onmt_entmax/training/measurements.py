"""What is measured while training, for the log."""

from __future__ import annotations

import time


class Measurements:
    """Running averages of what the output layer reports and of time, since the last `take`."""

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self._loss = self._tokens = self._correct = self._support = 0.0
        self._waited = 0.0
        self._since = time.monotonic()

    def waited(self, seconds: float) -> None:
        """Time that an update has waited for its batches."""
        self._waited += seconds

    def add(self, loss: float, tokens: float, correct: float, support: float) -> None:
        """Sums over the target tokens of an update."""
        self._loss += loss
        self._tokens += tokens
        self._correct += correct
        self._support += support

    def take(self) -> dict[str, float]:
        """Averages a target token since the last call, and how the time was spent."""
        tokens = max(self._tokens, 1.0)
        seconds = time.monotonic() - self._since
        averages = {
            "loss": self._loss / tokens,
            "token_accuracy": 100 * self._correct / tokens,
            "support": self._support / tokens,
            "tokens_per_second": self._tokens / seconds,
            "input_percent": 100 * self._waited / seconds,
        }
        self._reset()
        return averages
