"""The time of a run: what has passed, what its end will take, and what `max_seconds` leaves.

A part of `max_seconds` is reserved for the last validation and the last checkpoint. So updates end
before the limit, and the learning rate falls over the time that is left for them. How much is
reserved follows from the validation and the checkpoint before, and so changes during the run.
"""

import time

from onmt_entmax.parallel.processes import Processes
from onmt_entmax.train.saved_state import SavedClock

# The least seconds for updates, to divide by: the reserve may exceed the limit.
_LEAST_LIMIT = 1e-9


def seconds_at_end(saved: SavedClock) -> float:
    """Return `Clock.at_end` of a run that is resumed from a saved clock.

    Version 1.0 saved no durations of validations and checkpoints; they count as 0.
    """
    return saved["seconds"] + saved.get("validating", 0.0) + saved.get("saving", 0.0)


class Clock:
    """The time of a run, which all processes take from the first one.

    If each read its own clock, they would disagree on the learning rate and on when the run ends.

    The trainer calls `start` once, `begin_update` before each update, `saved` after each
    checkpoint, and `spend_reserve` if the limit ended the run. It sets `seconds` from the report of
    each update, and `validating` after a validation. The learning rate follows `passed`.

    Args:
        limit: `max_seconds`, or None.
        processes: the processes of the run.

    Attributes:
        seconds: time of the run when it was last shared, including the time before it was resumed.
        validating: seconds that the last validation took.
        saving: seconds that the last checkpoint took.
    """

    def __init__(self, limit: float | None, processes: Processes) -> None:
        self.seconds = 0.0
        self.validating = 0.0
        self.saving = 0.0
        self._limit = limit
        self._processes = processes
        self._started = time.monotonic()
        self._passed = 0.0  # what `passed` returned for the last update
        # Duration of the last checkpoint, which becomes `saving` with the next update.
        self._next_saving: float | None = None

    def start(self, began: float | None) -> None:
        """Start, or go on after the seconds of a run that is resumed.

        Args:
            began: when this process began to train, by `time.monotonic`; None: now.
        """
        now = time.monotonic() if began is None else began
        self._started = now - self.seconds

    def elapsed(self) -> float:
        """Return the seconds of the run by this process's own clock."""
        return time.monotonic() - self._started

    def share(self) -> None:
        """Take over the seconds of the run by the first process's clock."""
        self.seconds = float(self._processes.from_first(self.elapsed()))

    def begin_update(self) -> None:
        """Take over the duration of the last checkpoint, see `saved`; note what has passed."""
        if self._next_saving is not None:
            self.saving = self._next_saving
            self._next_saving = None
        self._passed = self.passed()

    def saved(self, seconds: float) -> None:
        """Note how long a checkpoint took, which counts from the next update on.

        The checkpoint itself has the duration of the one before. If the new one counted at once, it
        might end the run, while a run that is resumed from this checkpoint would go on.
        """
        self._next_saving = float(self._processes.from_first(seconds))
        self.share()

    def at_end(self) -> float:
        """Return the seconds of the run if it ended now, after a validation and a checkpoint."""
        return self.seconds + self._reserve()

    def passed(self) -> float:
        """Return the share of the time for updates that has passed; 0 without a limit.

        It never falls. If a validation or a checkpoint is quicker than the one before, less is
        reserved, and the share stays until the time has caught up with it. So the learning rate
        does not rise again.
        """
        if self._limit is None:
            return 0.0
        for_updates = max(self._limit - self._reserve(), _LEAST_LIMIT)
        return max(self._passed, min(self.seconds / for_updates, 1.0))

    def _reserve(self) -> float:
        """Return the seconds that the last validation and checkpoint will take, as before."""
        return self.validating + self.saving

    def spend_reserve(self) -> None:
        """Count the reserve as spent, even if the end is quicker.

        Otherwise a run that ended by its limit would find some time left when it is resumed, and
        make another update.
        """
        if self._limit is not None:
            seconds = float(self._processes.from_first(self.elapsed()))
            self._started -= max(self._limit - seconds, 0.0)

    def state_dict(self) -> SavedClock:
        """Return what a checkpoint saves."""
        return {
            "seconds": self.seconds,
            "validating": self.validating,
            "saving": self.saving,
            "max_seconds": self._limit,
            "passed": self._passed,
        }

    def load_state_dict(self, saved: SavedClock) -> None:
        """Restore what `state_dict` returned; with another limit, another share has passed."""
        same_limit = saved.get("max_seconds") == self._limit
        self._passed = saved.get("passed", 0.0) if same_limit else 0.0
        self.seconds = saved["seconds"]
        self.validating = saved.get("validating", 0.0)
        self.saving = saved.get("saving", 0.0)
