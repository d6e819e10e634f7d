"""Attention in C++ and PyTorch's products, for float32 and float64 on a CPU.

It works on a group of heads at a time, whose scores stay in the cache: a product writes the scores,
one pass in place turns them into weights (csrc/attention_rows.h), another product makes the output.
The gradient needs the inputs and the weights; its pass turns gradients in weights into those in
scores.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from onmt_entmax.sparse.arguments import has_memory, is_traced
from onmt_entmax.sparse.backends.attention_inputs import Inputs, Leading
from onmt_entmax.sparse.backends.cpu import load

module: Any = load("onmt_entmax.sparse.backends._attention")

_KINDS = {torch.float32: "f", torch.float64: "d"}
_NO_MASK, _CAUSAL, _BOOLEANS, _NUMBERS = range(4)
# Bytes of a group's scores.
_GROUP = 1 << 19


def covers(inputs: Inputs) -> bool:
    """Return whether the C++ code takes the inputs: not empty, in memory, on a CPU."""
    query = inputs.query
    return (
        module is not None
        and query.device.type == "cpu"
        and query.dtype in _KINDS
        and not is_traced()
        and all(
            given.numel() > 0 and has_memory(given) for given in inputs if isinstance(given, Tensor)
        )
    )


def forward(inputs: Inputs, keep: bool) -> tuple[Tensor, Tensor | None]:
    """Return attention ``(..., queries, value size)`` and its weights.

    The weights are ``(..., queries, keys)``, for :func:`backward`: those that dropout drops are
    negative. Without ``keep`` they are not kept, but for the output if there are no values.
    """
    work = _Work(inputs)
    query, key, value = work.query, work.key, work.value
    weights = work.new(work.queries, work.keys) if keep or value is None else None
    if inputs.dropout_p > 0:
        work.seed = int(torch.randint(1 << 62, ()))
    output = None if value is None else work.new(work.queries, value.shape[-1])
    buffer, rest = work.buffer(weights is None), work.buffer(inputs.dropout_p > 0)
    for group in work.groups():
        scores = _part(weights, group) if buffer is None else buffer[: group.size]
        used = None if rest is None else rest[: group.size]
        torch.bmm(_part(query, group), _part(key, group).mT, out=scores)
        work.run(module.forward, group, inputs.scale, scores, used)
        if value is not None:
            torch.bmm(
                scores if used is None else used, _part(value, group), out=_part(output, group)
            )
    result = weights if output is None else output
    assert result is not None
    return work.shaped(result), None if weights is None else work.shaped(weights)


def backward(
    inputs: Inputs, weights: Tensor, gradient: Tensor, wanted: Sequence[bool]
) -> tuple[Tensor | None, ...]:
    """Return the gradients in query, key, value, alpha and mask; None where they are not wanted.

    Args:
        inputs: those of :func:`forward`.
        weights: its second result.
        gradient: in its first result.
        wanted: for each of the five whether it is.
    """
    work = _Work(inputs)
    query, key, value = work.query, work.key, work.value
    weights, gradient = work.of(weights), work.of(gradient)
    sizes = (query, key, gradient if value is None else value)
    query_grad, key_grad, value_grad = (
        work.new(*tensor.shape[-2:]) if asked else None
        for tensor, asked in zip(sizes, wanted, strict=False)
    )
    scores_grad = work.new(work.queries, work.keys) if wanted[4] else None
    alpha_grad = None
    if wanted[3]:
        alpha_grad = query.new_empty(work.count, work.queries, dtype=torch.float64)
    buffer, rest = work.buffer(scores_grad is None), work.buffer(inputs.dropout_p > 0)
    scale = inputs.scale if scores_grad is None else 1.0
    for group in work.groups():
        own, upstream = _part(weights, group), _part(gradient, group)
        grad = _part(scores_grad, group) if buffer is None else buffer[: group.size]
        used = None if rest is None else rest[: group.size]
        if value is None:
            grad.copy_(upstream)
        else:
            torch.bmm(upstream, _part(value, group).mT, out=grad)
        of_alpha = None if alpha_grad is None else alpha_grad[group.first :]
        work.run(module.backward, group, scale, own, used, grad, of_alpha)
        if query_grad is not None:
            torch.bmm(grad, _part(key, group), out=_part(query_grad, group))
        if key_grad is not None:
            torch.bmm(grad.mT, _part(query, group), out=_part(key_grad, group))
        if value_grad is not None:
            torch.bmm((own if used is None else used).mT, upstream, out=_part(value_grad, group))
    if scores_grad is not None:
        for unscaled in (query_grad, key_grad):
            if unscaled is not None:
                unscaled.mul_(inputs.scale)
    if alpha_grad is not None:
        assert isinstance(inputs.alpha, Tensor)
        alpha_grad = work.in_alpha(alpha_grad, inputs.alpha)
    of_query, of_key, of_value, of_scores = (
        None if made is None or given is None else work.shaped(made).sum_to_size(given.shape)
        for made, given in (
            (query_grad, inputs.query),
            (key_grad, inputs.key),
            (value_grad, inputs.value),
            (scores_grad, inputs.mask),
        )
    )
    return of_query, of_key, of_value, alpha_grad, of_scores


class _Group(NamedTuple):
    """Heads that are computed together: ``size`` from ``first`` on, if all are counted."""

    outer: slice
    heads: slice
    first: int
    size: int


def _part(tensor: Tensor | None, group: _Group) -> Tensor:
    """Return the part ``(count, rows, columns)`` of a tensor ``(outer, heads, rows, columns)``."""
    assert tensor is not None
    return tensor[group.outer, group.heads].flatten(0, 1)


class _Work(Leading):
    """The inputs as C++ takes them, and the groups of heads."""

    def __init__(self, inputs: Inputs) -> None:
        super().__init__(inputs)
        self.query, self.key = self.of(inputs.query), self.of(inputs.key)
        self.value = None if inputs.value is None else self.of(inputs.value)
        self.seed = 0
        self._dropout_p = inputs.dropout_p
        alpha = torch.as_tensor(inputs.alpha, dtype=torch.float64, device="cpu")
        self._alpha = alpha.expand(self.heads, 1, 1).contiguous()
        mask, self._kind = inputs.mask, _CAUSAL if inputs.is_causal else _NO_MASK
        if mask is not None:
            self._kind = _BOOLEANS if mask.dtype == torch.bool else _NUMBERS
            if not mask.dim() or mask.stride(-1) != 1 or mask.shape[-1] == 1:
                # C++ reads adjacent keys; only other dimensions may repeat themselves.
                mask = mask.expand(*mask.shape[:-1], self.keys).contiguous()
            mask = self.of_mask(mask)
        self._mask = mask
        scores = self.queries * self.keys * inputs.query.itemsize
        self._together = max(min(_GROUP // max(scores, 1), self.count), 1)

    def new(self, rows: int, columns: int) -> Tensor:
        """Return memory ``(outer, heads, rows, columns)``."""
        return self.query.new_empty(self.outer, self.heads, rows, columns)

    def buffer(self, wanted: bool) -> Tensor | None:
        """Return memory for the scores of a group."""
        if not wanted:
            return None
        return self.query.new_empty(self._together, self.queries, self.keys)

    def groups(self) -> Iterator[_Group]:
        """Return groups of some heads of one outer index, or of all heads of several."""
        outer, heads, together = self.outer, self.heads, self._together
        step, within = max(together // heads, 1), min(together, heads)
        for begin in range(0, outer, step):
            end = min(begin + step, outer)
            for first in range(0, heads, within):
                last = min(first + within, heads)
                size = (end - begin) * (last - first)
                yield _Group(slice(begin, end), slice(first, last), begin * heads + first, size)

    def run(
        self,
        function: Callable[..., None],
        group: _Group,
        scale: float,
        *tensors: Tensor | None,
    ) -> None:
        """Run a pass in C++ over the rows of a group.

        Args:
            function: of the module.
            group: the heads.
            scale: of the scores, or of the gradient.
            tensors: weights, used weights, gradient and gradient in alpha, ``(count, ...)``.
        """
        addresses = [0 if given is None else given.data_ptr() for given in (*tensors, None, None)]
        mask = self._mask
        packed = struct.pack(
            "11q2d5q",
            group.first, group.size, self.queries, self.keys,
            self._alpha.data_ptr(), self.heads,
            0 if mask is None else mask.data_ptr(), self._kind,
            *((0, 0, 0) if mask is None else mask.stride()[:3]),
            scale, self._dropout_p, self.seed,
            *addresses[:4],
        )  # fmt: skip
        function(_KINDS[self.query.dtype], torch.get_num_threads(), packed)
