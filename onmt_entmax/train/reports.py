"""What updates measured, on its way from the device to the trainer."""

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

# How many updates a GPU may be behind this process: with small networks a few tens of
# milliseconds, so that a signal or a loss that is not finite is soon noticed.
_BEHIND = 8


class Report(NamedTuple):
    """Measurements of an update, summed over its batches and over all processes.

    Attributes:
        loss: sum of the losses of all targets, in nats; see `OutputLoss`.
        tokens: number of targets.
        correct: number of targets that have the largest score.
        support: number of nonzero probabilities.
        signal: number of the signal that a process has received, or 0; the numbers of several
            processes add up.
        seconds: time of the run before this update, by the clock of the first process.
        norm: norm of the gradient, before it is clipped.
    """

    loss: float
    tokens: float
    correct: float
    support: float
    signal: float
    seconds: float
    norm: float


class Reports:
    """Reports of updates, which are read some updates later, so that no update waits for them.

    The trainer calls `send` in each update and then `read`; a copy to the CPU runs beside the
    updates that follow.

    Args:
        device: the device that they come from.

    Attributes:
        delay: number of the newest reports that are not read yet.
    """

    def __init__(self, device: torch.device) -> None:
        self.delay = _BEHIND if device.type == "cuda" else 0
        self._sent: deque[tuple[int, Tensor, torch.cuda.Event | None]] = deque()

    def send(self, step: int, values: Tensor) -> None:
        """Start to copy the report of update number `step`, ``(7,)`` in the order of `Report`."""
        if values.device.type == "cuda":
            pinned = torch.empty(values.shape, dtype=values.dtype, pin_memory=True)
            pinned.copy_(values, non_blocking=True)
            arrived = torch.cuda.Event()
            arrived.record()
            self._sent.append((step, pinned, arrived))
        else:
            self._sent.append((step, values.clone(), None))

    def read(self, everything: bool = False) -> Iterator[tuple[int, Report]]:
        """Yield step and report of all updates but the newest `delay`, or wait for `everything`."""
        unread = 0 if everything else self.delay
        while len(self._sent) > unread:
            step, values, arrived = self._sent.popleft()
            if arrived is not None:
                arrived.synchronize()
            yield step, Report(*values.tolist())
