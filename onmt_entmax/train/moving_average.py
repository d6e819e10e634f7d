"""The moving average of the weights, which validation and checkpoints use in their place."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class MovingAverage:
    """Exponential moving average of the weights, evaluated and saved in their place.

    After update s the average becomes (1 - d) average + d weights, with

        d = max(decay, 9 / (s + 10)) = max(decay, 1 - (s + 1) / (s + 10))

    so that early averages follow the weights closely, and the first weights count little
    (Junczys-Dowmunt et al. 2018, "Marian: Fast Neural Machine Translation in C++"; OpenNMT-py
    2.3.0, `Trainer._update_average`).

    The trainer calls `update` after each update, and saves and validates inside `applied`. A
    checkpoint then has the average as the model's weights, and the weights that `applied` yielded
    beside it; `restore` takes these to resume.

    Args:
        model: all its weights are averaged, frozen ones included.
        decay: share of the newest weights, such as 1e-4; 0 keeps no average.
        every: updates between two changes of the average.
    """

    def __init__(self, model: nn.Module, decay: float, every: int) -> None:
        self._weights: list[Tensor] = [*model.parameters()]
        self._decay = decay
        self._every = every
        self._average: list[Tensor] | None = None

    @torch.no_grad()
    def update(self, step: int, finite: Tensor) -> None:
        """Add the weights after update number `step`, counted from 1.

        Args:
            step: the number of the update.
            finite: 0-dim, on the weights' device: 0 if the update was left out, so that the average
                stays, else 1. A tensor, so that nothing waits for the device.
        """
        if self._decay == 0 or (step - 1) % self._every:
            return
        if self._average is None:
            self._average = [weight.clone() for weight in self._weights]
        else:
            share = max(self._decay, 1 - (step + 1) / (step + 10))  # of the newest weights
            for average, weight in zip(self._average, self._weights, strict=True):
                average.lerp_(weight, share * finite)

    @contextmanager
    def applied(self) -> Iterator[list[Tensor] | None]:
        """Replace the weights by the average inside the block.

        Yields:
            The weights, in the order of the model's parameters; None if there is no average, and
            nothing is replaced.
        """
        if self._average is None:
            yield None
            return
        raw = [weight.detach().clone() for weight in self._weights]
        self._set(self._average)
        try:
            yield raw
        finally:
            self._set(raw)

    def restore(self, raw: Sequence[Tensor] | None) -> None:
        """Restore a run whose model was saved inside `applied`.

        Args:
            raw: what `applied` yielded then. The model's weights are the average, and become these.
        """
        if raw is None:
            return
        if self._decay > 0:
            self._average = [weight.detach().clone() for weight in self._weights]
        self._set(raw)

    @torch.no_grad()
    def _set(self, values: Sequence[Tensor]) -> None:
        """Copy values into the weights, which keep their memory."""
        torch._foreach_copy_(self._weights, list(values))
