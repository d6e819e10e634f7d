"""The arguments of attention as all backends take them, after the checks of attention_checks.py."""

from __future__ import annotations

import math
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


def leading_shape(*tensors: Tensor | None) -> torch.Size:
    """Return the common leading dimensions of tensors ``(..., rows, columns)``.

    Raises:
        RuntimeError: if they do not broadcast.
    """
    shapes = [tensor.shape[:-2] for tensor in tensors if tensor is not None]
    # The general function takes as long as attention to a few keys.
    same = all(shape == shapes[0] for shape in shapes)
    return shapes[0] if same else torch.broadcast_shapes(*shapes)


class Leading:
    """The leading dimensions of inputs as exactly two: ``outer`` ones and ``heads``.

    For inputs ``(sentences, heads, rows, size)`` these are the same. Those of
    ``(batch, beams, heads, rows, size)`` are ``batch * beams`` and ``heads``.

    Attributes:
        outer: all but the last, multiplied.
        heads: the last leading dimension.
        count: number of heads in all.
        queries: of a head.
        keys: of a head.
    """

    def __init__(self, inputs: Inputs) -> None:
        self._shape = leading_shape(inputs.query, inputs.key, inputs.value)
        self.heads = self._shape[-1] if self._shape else 1
        self.count = math.prod(self._shape)
        self.outer = self.count // self.heads
        self.queries, self.keys = inputs.query.shape[-2], inputs.key.shape[-2]

    def of(self, tensor: Tensor) -> Tensor:
        """Return a tensor ``(outer, heads, rows, columns)``, as a rule without a copy."""
        last = tensor.shape[-2:]
        return tensor.expand(*self._shape, *last).reshape(self.outer, self.heads, *last)

    def of_mask(self, mask: Tensor) -> Tensor:
        """Return a mask ``(outer, heads, queries, keys)``, as a rule without a copy."""
        return self.of(mask.expand(*self._shape, self.queries, self.keys))

    def shaped(self, tensor: Tensor) -> Tensor:
        """Return a tensor of two leading dimensions with those of the inputs."""
        return tensor.view(*self._shape, *tensor.shape[-2:])

    def in_alpha(self, gradients: Tensor, alpha: Tensor) -> Tensor:
        """Return the gradient in alpha, of those of all queries ``(count, queries)``."""
        by_head = gradients.view(-1, self.heads, self.queries).sum((0, 2))
        return by_head.view(alpha.shape).to(alpha.dtype)
