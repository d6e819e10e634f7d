"""How well the probabilities of predictions agree with how often these are right.

The error of calibration (Guo et al. 2017, "On Calibration of Modern Neural Networks", equation 3)
is, over the ten equal intervals of probability from 0 to 1, the mean distance between the mean
probability of an interval's predictions and their share of right ones, weighted by their number.
"""

from dataclasses import dataclass, field
from math import fsum
from typing import Any

_INTERVALS = 10


@dataclass
class _Interval:
    """Predictions whose probabilities lie in one interval."""

    number: int = 0
    right: int = 0
    probability: float = 0.0
    """Sum of the probabilities."""


@dataclass
class Probabilities:
    """Counts of predictions by their probability."""

    _intervals: list[_Interval] = field(
        default_factory=lambda: [_Interval() for _ in range(_INTERVALS)]
    )

    def add(self, probability: float, *, is_right: bool) -> None:
        """Count a prediction with a probability from 0 to 1."""
        # The last interval contains its end.
        interval = self._intervals[min(int(probability * _INTERVALS), _INTERVALS - 1)]
        interval.number += 1
        interval.right += is_right
        interval.probability += probability

    @property
    def number(self) -> int:
        """Predictions that have a probability."""
        return sum(interval.number for interval in self._intervals)

    @property
    def mean(self) -> float:
        """The mean probability; there is at least one prediction."""
        return fsum(interval.probability for interval in self._intervals) / self.number

    @property
    def error(self) -> float:
        """The error of calibration; there is at least one prediction."""
        # For n predictions of an interval, n |mean probability - share of right ones|.
        distances = (abs(interval.probability - interval.right) for interval in self._intervals)
        return fsum(distances) / self.number

    def text(self) -> str:
        """Return mean, error and the surest predictions as a line of text, in percent."""
        surest = self._intervals[-1]
        text = f"probabilities: mean {self.mean:.2%}, error of calibration {self.error:.2%}"
        if surest.number:
            text += (
                f"; 0.9 or more for {surest.number / self.number:.2%} of the predictions, and of "
                f"these right {surest.right / surest.number:.2%}"
            )
        return text

    def as_dict(self) -> dict[str, Any]:
        """Return mean and error for JSON."""
        return {"predictions": self.number, "mean": self.mean, "calibration_error": self.error}
