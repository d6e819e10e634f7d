"""The tensors of attention as the C++ code takes them, and groups of their heads.

cpu_attention.py goes through the groups, and multiplies their slices of the tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from onmt_entmax.sparse.backends.cpu_module import run
from onmt_entmax.sparse.backends.cpu_structs import BOOLEANS, CAUSAL, NO_MASK, NUMBERS, Heads
from onmt_entmax.sparse.head_layout import HeadLayout
from onmt_entmax.sparse.inputs import Inputs

# The most bytes of the scores of a group, so that they stay in the second-level cache of a core,
# which has 512 KiB or more on most processors. A head with more scores is a group of its own.
_GROUP_BYTES = 1 << 19


@dataclass(frozen=True)
class HeadGroup:
    """Some heads of one outer index, or all heads of several.

    Attributes:
        first_head: number of the first head, counted over all outer indices.
        outer: the outer indices.
        heads: the heads of each outer index.
    """

    first_head: int
    outer: slice
    heads: slice

    def slice_of(self, tensor: Tensor) -> Tensor:
        """Return the part ``(count, rows, columns)`` of ``(outer, heads, rows, columns)``.

        It is a view, through which results can be written, since a group's heads are adjacent in
        memory.
        """
        return tensor[self.outer, self.heads].flatten(0, 1)


class HeadTensors:
    """The inputs of attention as C++ takes them.

    Attributes:
        layout: layout of the tensors.
        query: ``(outer, heads, queries, size)``.
        key: ``(outer, heads, keys, size)``.
        value: ``(outer, heads, keys, value size)``; None if the weights are the result.
        scale: factor of the scores.
        dropout_p: probability with which a weight is dropped.
    """

    def __init__(self, inputs: Inputs) -> None:
        self.layout = layout = HeadLayout(inputs)
        self.query, self.key = layout.split(inputs.query), layout.split(inputs.key)
        self.value = None if inputs.value is None else layout.split(inputs.value)
        self.scale, self.dropout_p = inputs.scale, inputs.dropout_p
        alpha = torch.as_tensor(inputs.alpha, dtype=torch.float64, device="cpu")
        self._alpha = alpha.detach().expand(layout.heads, 1, 1).contiguous()
        self._mask = None if inputs.mask is None else self._with_adjacent_keys(inputs.mask)
        self._mask_kind = CAUSAL if inputs.is_causal else NO_MASK
        if self._mask is not None:
            self._mask_kind = BOOLEANS if self._mask.dtype == torch.bool else NUMBERS

    def _with_adjacent_keys(self, mask: Tensor) -> Tensor:
        """Return a mask ``(outer, heads, queries, keys)`` whose keys are adjacent in memory.

        In its other dimensions it may be broadcast, with a stride of 0.
        """
        if not mask.dim() or mask.stride(-1) != 1 or mask.shape[-1] == 1:
            mask = mask.expand(*mask.shape[:-1], self.layout.keys).contiguous()
        return self.layout.split_mask(mask)

    def empty(self, rows: int, columns: int) -> Tensor:
        """Return memory ``(outer, heads, rows, columns)``."""
        return self.query.new_empty(self.layout.outer, self.layout.heads, rows, columns)

    def groups(self) -> Iterator[HeadGroup]:
        """Yield groups of heads whose scores stay in the cache."""
        layout = self.layout
        bytes_of_head = layout.queries * layout.keys * self.query.itemsize
        count = min(max(_GROUP_BYTES // bytes_of_head, 1), layout.total_heads)
        outer_step, head_step = max(count // layout.heads, 1), min(count, layout.heads)
        for outer in range(0, layout.outer, outer_step):
            for head in range(0, layout.heads, head_step):
                yield HeadGroup(
                    outer * layout.heads + head,
                    slice(outer, outer + outer_step),
                    slice(head, head + head_step),
                )

    def run(
        self,
        function: Callable[..., None],
        group: HeadGroup,
        *,
        scale: float,
        weights: Tensor,
        used: Tensor | None,
        seed: int = 0,
        incoming: Tensor | None = None,
        gradient: Tensor | None = None,
        alpha_gradient: Tensor | None = None,
    ) -> None:
        """Run a pass in C++ over the rows of a group.

        Args:
            function: `module.forward` or `module.backward`.
            group: the group of heads.
            scale: see `Heads`, as for all arguments below.
            weights: ``(count, queries, keys)``.
            used: ``(count, queries, keys)``, or None without dropout.
            seed: for `module.forward` alone.
            incoming: ``(count, queries, keys)``, for `module.backward` alone.
            gradient: ``(count, queries, keys)``, for `module.backward` alone.
            alpha_gradient: ``(count, queries)``, for `module.backward` alone; None if not wanted.
        """
        strides = (0, 0, 0) if self._mask is None else self._mask.stride()[:3]
        heads = Heads(
            first=group.first_head,
            queries=self.layout.queries,
            alpha=self._alpha,
            heads=self.layout.heads,
            mask=self._mask,
            mask_kind=self._mask_kind,
            mask_outer=strides[0],
            mask_head=strides[1],
            mask_row=strides[2],
            scale=scale,
            dropped_part=self.dropout_p,
            seed=seed,
            weights=weights,
            used=used,
            incoming=incoming,
            gradient=gradient,
            alpha_gradient=alpha_gradient,
        )
        run(function, weights, heads)
