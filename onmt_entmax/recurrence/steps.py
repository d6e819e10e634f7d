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
        sizes: number of rows of each step. They are the first rows of the batch, since sentences
            that have ended are its last rows.
        positions: position of each packed row in a flattened ``(steps, batch)``, ``(total,)``.
        real: for fixed steps, whether each packed row is real, not padding, ``(total, 1)``; None
            for packed steps, whose rows are all real.
        last: for fixed steps, the packed row of each sentence's last step, ``(batch,)``; None for
            packed steps.
    """

    sizes: list[int]
    positions: Tensor
    real: Tensor | None
    last: Tensor | None

    @staticmethod
    def of(lengths: Tensor, count: int, fixed: bool) -> Steps:
        """Return the steps of a batch of sentences.

        Args:
            lengths: steps of each sentence, ``(batch,)`` int64; longest first unless `fixed`.
            count: number of steps, at least the largest length.
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
        """Whether all rows take all steps, padding included."""
        return self.real is not None

    def with_zeros_at_padding(self, packed: Tensor) -> Tensor:
        """Return packed rows ``(total, size)`` with zeros at padding."""
        return packed if self.real is None else packed * self.real

    def reversed(self, packed: Tensor) -> Tensor:
        """Return packed rows ``(total, size)`` with the last step first; only for fixed steps."""
        assert self.are_fixed, "steps of different sizes cannot change places"
        return packed.view(len(self.sizes), -1, packed.size(1)).flip(0).view_as(packed)
