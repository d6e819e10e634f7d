"""Calibration: whether predictions of probability p are right with frequency p.

The error of calibration (Guo et al. 2017, "On Calibration of Modern Neural Networks", equation 3)
divides the probabilities from 0 to 1 into ten equal intervals. In each interval, it takes the
distance between the mean probability and the share of right predictions. The error is the mean of
these distances, weighted by the number of predictions in the interval.
"""

from dataclasses import dataclass, field
from math import fsum
from typing import Any

_INTERVALS = 10


@dataclass
class _Interval:
    """The predictions whose probabilities lie in one interval.

    Attributes:
        predictions: number of the predictions.
        right: number of the right ones.
        probabilities: sum of their probabilities.
    """

    predictions: int = 0
    right: int = 0
    probabilities: float = 0.0


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
        interval.predictions += 1
        interval.right += is_right
        interval.probabilities += probability

    @property
    def predictions(self) -> int:
        """Number of the predictions."""
        return sum(interval.predictions for interval in self._intervals)

    @property
    def mean(self) -> float:
        """The mean probability; there is at least one prediction."""
        return fsum(interval.probabilities for interval in self._intervals) / self.predictions

    @property
    def calibration_error(self) -> float:
        """The error of calibration, from 0 to 1; there is at least one prediction."""
        # For n predictions of an interval, n |mean probability - share of right ones|.
        distances = (abs(interval.probabilities - interval.right) for interval in self._intervals)
        return fsum(distances) / self.predictions

    def text(self) -> str:
        """Return mean, error and the surest predictions as a line of text, in percent."""
        error = self.calibration_error
        text = f"probabilities: mean {self.mean:.2%}, error of calibration {error:.2%}"
        surest = self._intervals[-1]
        if surest.predictions:
            share = surest.predictions / self.predictions
            text += (
                f"; 0.9 or more for {share:.2%} of the predictions, and of these right "
                f"{surest.right / surest.predictions:.2%}"
            )
        return text

    def as_dict(self) -> dict[str, Any]:
        """Return mean and error for JSON."""
        return {
            "predictions": self.predictions,
            "mean": self.mean,
            "calibration_error": self.calibration_error,
        }
