"""The leading dimensions of attention, which backends need as two: outer indices and heads."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from onmt_entmax.sparse.inputs import Inputs


def leading_shape(*tensors: Tensor | None) -> torch.Size:
    """Return the common leading dimensions of tensors ``(..., rows, columns)``.

    Raises:
        RuntimeError: if they do not broadcast.
    """
    shapes = [tensor.shape[:-2] for tensor in tensors if tensor is not None]
    # PyTorch's function takes as long as attention to a few keys, and equal shapes do not need it.
    are_equal = all(shape == shapes[0] for shape in shapes)
    return shapes[0] if are_equal else torch.broadcast_shapes(*shapes)


class HeadLayout:
    """The layout ``(outer, heads, rows, columns)`` of tensors with any leading dimensions.

    ``(sentences, heads, rows, columns)`` is already in this layout. For ``(batch, beams, heads,
    rows, columns)``, ``outer`` is ``batch * beams``.

    Tensors in this layout are views. Only a tensor whose merged dimensions are not adjacent in
    memory is copied, for example one that broadcasts over some of them.

    Args:
        inputs: the inputs of attention, with at least one head: no leading dimension is 0.

    Attributes:
        outer: all leading dimensions but the last, multiplied.
        heads: the last leading dimension, 1 if there is none.
        total_heads: heads of all outer indices together, ``outer * heads``.
        queries: number of queries of a head.
        keys: number of keys of a head.
    """

    def __init__(self, inputs: Inputs) -> None:
        self._leading = leading_shape(inputs.query, inputs.key, inputs.value)
        self.heads = self._leading[-1] if self._leading else 1
        self.total_heads = math.prod(self._leading)
        self.outer = self.total_heads // self.heads
        self.queries, self.keys = inputs.query.shape[-2], inputs.key.shape[-2]

    def split(self, tensor: Tensor) -> Tensor:
        """Return a tensor ``(..., rows, columns)`` as ``(outer, heads, rows, columns)``."""
        matrix = tensor.shape[-2:]
        return tensor.expand(*self._leading, *matrix).reshape(self.outer, self.heads, *matrix)

    def split_mask(self, mask: Tensor) -> Tensor:
        """Return a mask that broadcasts to the weights as ``(outer, heads, queries, keys)``."""
        return self.split(mask.expand(*self._leading, self.queries, self.keys))

    def merge(self, tensor: Tensor) -> Tensor:
        """Return a contiguous tensor of this layout with the leading dimensions of the inputs."""
        return tensor.view(*self._leading, *tensor.shape[-2:])

    def sum_by_head(self, numbers: Tensor) -> Tensor:
        """Return the sums ``(heads,)`` over outer indices and queries.

        Args:
            numbers: one for each query, ``(total_heads, queries)``.
        """
        return numbers.view(-1, self.heads, self.queries).sum((0, 2))
