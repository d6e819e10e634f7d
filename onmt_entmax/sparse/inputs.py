"""The arguments of attention as backends take them; `attention_checks.py` has checked them."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Inputs(NamedTuple):
    """Queries, keys and values of attention, and how their weights are computed.

    The leading dimensions of the tensors broadcast. The last leading dimension is the heads.

    Attributes:
        query: ``(..., queries, size)``.
        key: ``(..., keys, size)``.
        value: ``(..., keys, value size)``; None: the weights are the output.
        alpha: a number >= 1, or ``(heads, 1, 1)``.
        mask: broadcasts to ``(..., queries, keys)``; or None. Booleans: a query attends where it is
            true. Numbers: added to the scaled scores.
        is_causal: whether query i attends to keys 0 to i only; then `mask` is None.
        scale: factor of the scores. In a trace it may be a tensor ``()``, computed from the size.
        dropout_p: the probability with which a weight is dropped, from 0 to 1.
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
        """Return the inputs with query, key, value and a mask of numbers converted to a type.

        Alpha keeps its type: it may be float64 beside queries in 16 bits.
        """
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
