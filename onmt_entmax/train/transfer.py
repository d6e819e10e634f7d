"""Transfers to and from the GPU that overlap with its computation.

Batches go from pinned memory on a stream of their own; the measurements of an update are read one
update later, so that the process does not wait for them.
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
    """Copy batches to the device.

    A GPU receives the ids while it still computes on the batch before. Lengths stay on the CPU,
    where the recurrence needs them.

    Args:
        device: of the model.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._stream = torch.cuda.Stream(device) if device.type == "cuda" else None

    def __call__(self, batch: Batch) -> Batch:
        """Return the batch on the device; the copy may still be running, ordered before any use."""
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
            ids.record_stream(current)  # keeps their memory until this stream is done
        return replace(batch, source=source, target=target)


class PendingValues:
    """Vectors on their way from the device, in the order in which they were sent.

    Args:
        delay: how many of the newest vectors `read` leaves for later; 0 waits for all.
    """

    def __init__(self, delay: int) -> None:
        self.delay = delay
        self._sent: deque[tuple[Tensor, torch.cuda.Event | None, Any]] = deque()

    def send(self, values: Tensor, about: Any) -> None:
        """Start to copy the vector `values`; `about` is returned with it."""
        arrived = None
        if values.device.type == "cuda":
            here = torch.empty(values.shape, dtype=values.dtype, pin_memory=True)
            values = here.copy_(values, non_blocking=True)
            arrived = torch.cuda.Event()
            arrived.record()
        self._sent.append((values, arrived, about))

    def read(self, everything: bool = False) -> Iterator[tuple[list[float], Any]]:
        """Yield the vectors that are older than `delay`, or all, each with its `about`."""
        while len(self._sent) > (0 if everything else self.delay):
            values, arrived, about = self._sent.popleft()
            if arrived is not None:
                arrived.synchronize()
            yield values.tolist(), about
