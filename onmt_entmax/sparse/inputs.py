"""The arguments of attention as all backends take them, after the checks of attention_checks.py."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Inputs(NamedTuple):
    """The arguments of attention.

    Attributes:
        query: ``(..., queries, size)``; leading dimensions broadcast, the last are the heads.
        key: ``(..., keys, size)``.
        value: ``(..., keys, value size)``; None: the weights are the output.
        alpha: a number, or ``(heads, 1, 1)``.
        mask: broadcasts to the weights; booleans, or numbers.
        is_causal: whether query i attends to keys 0 to i only.
        scale: of the scores.
        dropout_p: the probability with which a weight is dropped.
    """

    query: Tensor
    key: Tensor
    value: Tensor | None
    alpha: float | Tensor
    mask: Tensor | None
    is_causal: bool
    scale: float
    dropout_p: float

    def in_type(self, dtype: torch.dtype) -> Inputs:
        """Return the inputs with all numbers but alpha in a type."""
        value, mask = self.value, self.mask
        # Not `_replace` or `*self[5:]`, which torch 2.6 does not compile.
        return Inputs(
            self.query.to(dtype),
            self.key.to(dtype),
            None if value is None else value.to(dtype),
            self.alpha,
            mask if mask is None or mask.dtype == torch.bool else mask.to(dtype),
            self.is_causal,
            self.scale,
            self.dropout_p,
        )
