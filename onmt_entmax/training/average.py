"""The moving average of a model's weights, which is evaluated and saved in their place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class MovingAverage:
    """An exponential moving average of weights, as Marian and OpenNMT-py have it.

    After update s it becomes (1 - d) average + d weights with d = max(decay, 9 / (s + 10)), so
    that the first weights are soon forgotten (Junczys-Dowmunt et al. 2018, Marian: Fast Neural
    Machine Translation in C++; OpenNMT-py 2.3.0, `Trainer._update_average`).

    Args:
        model: its weights are averaged, those of embeddings and of frozen parts too.
        decay: share of the newest weights, such as 1e-4; 0 keeps no average.
        every: updates from one share to the next.
    """

    def __init__(self, model: nn.Module, decay: float, every: int) -> None:
        self._weights = list(model.parameters())
        self._decay, self._every = decay, every
        self._average: list[Tensor] | None = None

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Take in the weights after update number `step`, counted from 1."""
        if self._decay == 0 or (step - 1) % self._every:
            return
        if self._average is None:
            self._average = [weight.clone() for weight in self._weights]
        else:
            share = max(self._decay, 1 - (step + 1) / (step + 10))
            for average, weight in zip(self._average, self._weights, strict=True):
                average.lerp_(weight, share)

    @contextmanager
    def applied(self) -> Iterator[list[Tensor] | None]:
        """Put the average in the place of the weights for a while.

        Gives the weights themselves, in the order of the model's parameters; None where there is
        no average, and the weights stay where they are.
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
        """Continue a run whose model was saved under `applied`, which gave `raw`."""
        if raw is None:
            return
        if self._decay > 0:
            self._average = [weight.detach().clone() for weight in self._weights]
        self._set(raw)

    @torch.no_grad()
    def _set(self, values: Sequence[Tensor]) -> None:
        for weight, value in zip(self._weights, values, strict=True):
            weight.copy_(value)
