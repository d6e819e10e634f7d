"""Attention that begins as softmax and becomes sparse while a model trains."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

from onmt_entmax.mappings.threshold import SMALLEST_POWER_ALPHA
from onmt_entmax.modules.attention import EntmaxGlobalAttention


class AttentionWarmup:
    """Raises alpha of the global attention from 1 (softmax) to the model's own.

    A source position of zero weight has no gradient: attention that is sparse from the start
    learns late where to look. Alpha rises linearly over the first updates, as softmax below 1.1.

    Args:
        model: what is in it of `EntmaxGlobalAttention` is warmed up.
        steps: updates until alpha is the model's own; 0 for none.
    """

    def __init__(self, model: nn.Module, steps: int) -> None:
        self._alphas = {
            module: module.alpha
            for module in model.modules()
            if isinstance(module, EntmaxGlobalAttention)
        }
        self._steps = steps

    @contextmanager
    def applied(self, step: int) -> Iterator[None]:
        """Train the update after `step` updates in the block; after it alpha is the model's own,
        which is what is validated and saved."""
        if step >= self._steps:
            yield
            return
        try:
            for module, alpha in self._alphas.items():
                raised = 1 + (alpha - 1) * step / self._steps
                # Below it entmax hardly differs from softmax, which is faster.
                module.alpha = raised if raised >= SMALLEST_POWER_ALPHA else 1.0
            yield
        finally:
            for module, alpha in self._alphas.items():
                module.alpha = alpha
