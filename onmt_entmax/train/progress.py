"""How far a run is: its position, its share of each limit, and the time that is left."""

import time
from typing import NamedTuple

from onmt_entmax.config import TrainingConfig


class Progress(NamedTuple):
    """How much of a run is done, in the units of its limits."""

    step: int
    epochs: float
    """Passes over the data, such as 1.5."""
    seconds: float


def shares_of_limits(config: TrainingConfig, at: Progress) -> dict[str, float]:
    """Return which part of each limit of a run is reached, by the option's name.

    Args:
        config: has the limits; one that is not set is left out.
        at: position of the run.
    """
    done = {"train_steps": at.step, "train_epochs": at.epochs, "max_seconds": at.seconds}
    limits = {name: getattr(config, name) for name in done}
    return {name: min(done[name] / limit, 1.0) for name, limit in limits.items() if limit}


class _Start(NamedTuple):
    """The first update of this process, from which its speed counts."""

    time: float
    """When it was made, by `time.monotonic`."""
    shares: dict[str, float]
    """The shares of limits that were reached then, see `shares_of_limits`."""


class TimeLeft:
    """The time to the first limit of a run, at the speed of this process so far.

    Args:
        config: limits of the run.
    """

    def __init__(self, config: TrainingConfig) -> None:
        self._config = config
        self._start: _Start | None = None

    def advance(self, at: Progress) -> None:
        """Begin to measure the speed, at the first update."""
        if self._start is None:
            self._start = _Start(time.monotonic(), shares_of_limits(self._config, at))

    def seconds(self, at: Progress) -> float | None:
        """Return the time to the first limit; None as long as nothing is known.

        Args:
            at: position of the run.
        """
        seconds = self._seconds_at_this_speed(at)
        if self._config.max_seconds is not None:
            seconds.append(max(self._config.max_seconds - at.seconds, 0.0))
        return min(seconds, default=None)

    def _seconds_at_this_speed(self, at: Progress) -> list[float]:
        """Return the times to the limits of updates and epochs; validations count in the speed."""
        if self._start is None:
            return []
        elapsed = time.monotonic() - self._start.time
        seconds = []
        for name, share in shares_of_limits(self._config, at).items():
            since_start = share - self._start.shares[name]
            if name != "max_seconds" and since_start > 0:
                seconds.append(elapsed * (1 - share) / since_start)
        return seconds
