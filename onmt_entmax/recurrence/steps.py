"""The rows that each step of a recurrence computes: packed for a CPU, fixed for CUDA graphs."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Steps:
    """The rows of each step of a recurrence over sentences of some lengths.

    A packed tensor holds the rows of step 0, then those of step 1, and so on. With fixed steps, all
    rows take all steps, so that no shape depends on the lengths.

    Attributes:
        sizes: rows of each step: the batch's first ones, which have not ended.
        positions: position of each packed row in a flattened ``(steps, batch)``, ``(total,)``.
        real: of fixed steps, which packed rows are no padding, ``(total, 1)``; None if all are.
        last: of fixed steps, the row of each sentence's last step, ``(batch,)``; else None.
    """

    sizes: list[int]
    positions: Tensor
    real: Tensor | None
    last: Tensor | None

    @staticmethod
    def of(lengths: Tensor, count: int, fixed: bool) -> Steps:
        """Return the steps of sentences.

        Args:
            lengths: ``(batch,)`` int64; longest first unless `fixed`.
            count: number of steps.
            fixed: whether all rows take all steps.
        """
        batch = len(lengths)
        device = lengths.device
        real = torch.arange(count, device=device).unsqueeze(1) < lengths  # (steps, batch)
        if fixed:
            last = (lengths - 1) * batch + torch.arange(batch, device=device)
            positions = torch.arange(count * batch, device=device)
            return Steps([batch] * count, positions, real.view(-1, 1), last)
        return Steps(real.sum(1).tolist(), real.flatten().nonzero().squeeze(1), None, None)

    @property
    def are_fixed(self) -> bool:
        """Whether all rows take all steps, those of padding too."""
        return self.real is not None

    def with_zeros_at_padding(self, packed: Tensor) -> Tensor:
        """Return rows ``(total, size)``, of which those of padding are zeros."""
        return packed if self.real is None else packed * self.real

    def reversed(self, packed: Tensor) -> Tensor:
        """Return the rows ``(total, size)`` of fixed steps, the last step first."""
        return packed.view(len(self.sizes), -1, packed.size(1)).flip(0).view_as(packed)
