"""To and from the device of the model, without waiting for it more than must be.

A GPU computes behind the process that feeds it. So batches go there from pinned memory on a stream
of their own, and what an update has measured is read when it has come, one update later.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from onmt_entmax.data.batch import Batch


class Transfer:
    """Takes batches to the device.

    On a GPU their ids are copied while it still computes on the batch before. Lengths stay where
    they are: the recurrence needs them on this side.

    Args:
        device: of the model.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._stream = torch.cuda.Stream(device) if device.type == "cuda" else None

    def __call__(self, batch: Batch) -> Batch:
        """The batch on the device, or on its way there before anything that uses it."""
        if self._stream is None:
            return batch
        assert batch.target is not None
        with torch.cuda.stream(self._stream):
            source, target = (
                ids.pin_memory().to(self._device, non_blocking=True)
                for ids in (batch.source, batch.target)
            )
        current = torch.cuda.current_stream(self._device)
        current.wait_stream(self._stream)
        for ids in (source, target):
            ids.record_stream(current)  # their memory is not used again before this stream is done
        return replace(batch, source=source, target=target)


class Numbers:
    """Numbers on their way from the device, in the order in which they were sent.

    Args:
        behind: how many may still be on their way when others are read; 0 waits for each.
    """

    def __init__(self, behind: int) -> None:
        self.behind = behind
        self._sent: deque[tuple[Tensor, torch.cuda.Event | None, Any]] = deque()

    def send(self, values: Tensor, about: Any) -> None:
        """Send `values`, a vector, together with what they are about."""
        arrived = None
        if values.device.type == "cuda":
            here = torch.empty(values.shape, dtype=values.dtype, pin_memory=True)
            values = here.copy_(values, non_blocking=True)
            arrived = torch.cuda.Event()
            arrived.record()
        self._sent.append((values, arrived, about))

    def read(self, everything: bool = False) -> Iterator[tuple[list[float], Any]]:
        """Take what must have arrived by now, or everything that was sent."""
        while len(self._sent) > (0 if everything else self.behind):
            values, arrived, about = self._sent.popleft()
            if arrived is not None:
                arrived.synchronize()
            yield values.tolist(), about
