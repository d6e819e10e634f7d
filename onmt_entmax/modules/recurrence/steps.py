"""Which rows of a batch each step of a recurrence computes."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Steps:
    """Which rows a recurrence computes: step t the first ``sizes[t]`` of a sorted batch.

    Packed tensors hold the rows of step 0, then those of step 1, and so on.

    Attributes:
        batch: rows of the batch.
        sizes: active rows of each step, never increasing.
        starts: packed position of each step's first row.
        total: rows of all steps.
    """

    batch: int
    sizes: tuple[int, ...]
    starts: tuple[int, ...]
    total: int

    @staticmethod
    def of(lengths: list[int]) -> Steps:
        """The steps of rows with these lengths, longest first."""
        sizes = [0] * (lengths[0] if lengths else 0)
        for length in lengths:
            for step in range(length):
                sizes[step] += 1
        starts = [0]
        for size in sizes:
            starts.append(starts[-1] + size)
        return Steps(len(lengths), tuple(sizes), tuple(starts[:-1]), starts[-1])

    def rows(self, step: int) -> slice:
        """Where a packed tensor holds `step`."""
        return slice(self.starts[step], self.starts[step] + self.sizes[step])

    def padded(self, packed: Tensor) -> Tensor:
        """A packed ``(total, size)`` as ``(steps, batch, size)`` with zeros between."""
        if self.total == len(self.sizes) * self.batch:
            return packed.view(len(self.sizes), self.batch, -1)
        padded = packed.new_zeros(len(self.sizes), self.batch, packed.size(1))
        for step, size in enumerate(self.sizes):
            padded[step, :size] = packed[self.rows(step)]
        return padded

    def index(self, order: Tensor) -> Tensor:
        """Positions ``step * batch + order[row]`` of all packed rows, ``(total,)`` int64.

        Args:
            order: which column of the caller's padded tensors each sorted row is, ``(batch,)``.
        """
        return torch.cat([order[:size] + step * self.batch for step, size in enumerate(self.sizes)])


def on_device(indices: Tensor, device: torch.device) -> Tensor:
    """`indices` on `device`; from here to a GPU without waiting for it."""
    if device.type == "cuda" and indices.device.type == "cpu":
        indices = indices.pin_memory()
    return indices.to(device, non_blocking=True)
