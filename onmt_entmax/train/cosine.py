"""The cosine schedule of the learning rate, in one cycle or in several.

In a cycle, the rate falls as half a cosine wave to zero. With several cycles, the first one takes
half of the run. The others share the rest; each rises to half of the rate at once and falls from
there (Loshchilov and Hutter 2017, "SGDR: Stochastic Gradient Descent with Warm Restarts", equation
5). A cycle ends at weights of a finished training, and `CycleAverage` has their mean.
"""

import math
from bisect import bisect_left

from onmt_entmax.config import OptimizerConfig

# docs/results-plans-left-out.md#cycles-of-the-learning-rate has the trainings behind these.
_FIRST_SHARE = 0.5  # of the run, which the first of several cycles takes
_RESTART_FACTOR = 0.5  # on the rate in the others
_RISING_SHARE = 0.03  # of each of them, in which the rate rises while Adam's moments are new


class Cosine:
    """The factor on the learning rate, and the cycle, of each update.

    How far a run is follows from the updates or from the time, whichever is nearer to its end.

    Args:
        config: `warmup_steps`, in which the rate rises from zero, and `cosine_cycles`.
        last: the update at which the run ends; None without such a limit.
    """

    def __init__(self, config: OptimizerConfig, last: int | None) -> None:
        self._warmup = config.warmup_steps
        self._updates = math.inf if last is None else max(last - self._warmup, 1)
        later = config.cosine_cycles - 1
        # The shares of the run at which cycles begin, and 1, at which the last one ends.
        self._bounds = [0.0, 1.0]
        if later:
            each = (1 - _FIRST_SHARE) / later
            self._bounds[1:1] = [_FIRST_SHARE + number * each for number in range(later)]

    def factor(self, step: int, time: float) -> float:
        """Return the factor on the learning rate.

        Args:
            step: the update, from 1.
            time: the share of `max_seconds` that has passed; 0 without such a limit.
        """
        # Shares of the run are angles here, up to pi. That of updates is not `pi * share`, whose
        # last bits differ: a seed should give the same weights in every version.
        by_updates = math.pi * self._after_warmup(step) / self._updates
        angle = max(by_updates, math.pi * min(time, 1.0))
        cycle = self.cycle(step, time)
        begin, end = self._bounds[cycle : cycle + 2]
        in_cycle = (angle - math.pi * begin) / (end - begin)
        rise = min(step / self._warmup, 1.0)
        if cycle:
            rise *= _RESTART_FACTOR * min(in_cycle / (math.pi * _RISING_SHARE), 1.0)
        return rise * 0.5 * (1 + math.cos(in_cycle))

    def cycle(self, step: int, time: float) -> int:
        """Return the number of cycles that ended before an update.

        Args:
            step: see `factor`.
            time: see `factor`.
        """
        share = max(self._after_warmup(step) / self._updates, time)
        return bisect_left(self._bounds, share, 1, len(self._bounds) - 1) - 1

    def _after_warmup(self, step: int) -> int:
        """Return the number of an update, counted from the end of the warm-up; 0 inside it."""
        return max(step - self._warmup, 0)
