"""Attention in C++, for float32 and float64 on a CPU.

It works on a group of heads at a time, whose scores stay in the cache: a product writes the scores,
one pass in place turns them into weights (csrc/native_attention.h), another product makes the
output.
The gradient needs the inputs and the weights; its pass turns gradients in weights into those in
scores.

The noise of dropout is not kept: a weight that is dropped is negative.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from onmt_entmax.sparse.backends.cpu_module import (
    BOOLEANS,
    CAUSAL,
    NO_MASK,
    NUMBERS,
    Heads,
    module,
    run,
)
from onmt_entmax.sparse.inputs import Inputs, Leading

# Bytes of the scores of a group, which stay in the cache of a core.
_GROUP_BYTES = 1 << 19


def forward(inputs: Inputs, keep: bool) -> tuple[Tensor, tuple[Tensor | None]]:
    """Return attention ``(..., queries, value size)``, or without values its weights.

    Args:
        inputs: see `Inputs`.
        keep: whether :func:`backward` will be called.

    Returns:
        The result, and what :func:`backward` needs: the weights ``(..., queries, keys)``, negative
        where dropout drops them, or None.
    """
    work = _Work(inputs)
    weights = None
    if keep or work.value is None:
        weights = work.new(work.queries, work.keys)
    if inputs.dropout_p > 0:
        work.seed = int(torch.randint(1 << 62, ()))
    output = None if work.value is None else work.new(work.queries, work.value.shape[-1])
    for group in work.groups():
        query, key = group.of(work.query), group.of(work.key)
        if weights is None:
            scores = query.new_empty(*query.shape[:2], work.keys)
        else:
            scores = group.of(weights)
        dropped = torch.empty_like(scores) if inputs.dropout_p > 0 else None
        torch.bmm(query, key.mT, out=scores)
        # In place: from here on the scores are weights.
        work.run(module.forward, group, weights=scores, used=dropped, scale=inputs.scale)
        if work.value is not None and output is not None:
            used = scores if dropped is None else dropped
            torch.bmm(used, group.of(work.value), out=group.of(output))
    kept = None if weights is None else work.shaped(weights)
    result = kept if output is None else work.shaped(output)
    assert result is not None
    return result, (kept,)


def backward(
    inputs: Inputs, kept: Sequence[Tensor], gradient: Tensor, wanted: Sequence[bool]
) -> tuple[Tensor | None, ...]:
    """Return the gradients in query, key, value, alpha and mask; None where they are not wanted.

    Args:
        inputs: those of :func:`forward`.
        kept: its second result.
        gradient: in its first result.
        wanted: for each of the five whether it is.
    """
    work = _Work(inputs)
    weights, upstream = work.of(kept[0]), work.of(gradient)
    grads = _Gradients.empty(inputs, work, wanted)
    for group in work.groups():
        _write_group(inputs, work, group, weights, upstream, grads)
    if grads.mask is not None:
        # Its gradient is that in the scores before they are scaled; see `_write_group`.
        for grad in (grads.query, grads.key):
            if grad is not None:
                grad.mul_(inputs.scale)
    in_alpha = None
    if grads.alpha is not None:
        assert isinstance(inputs.alpha, Tensor)
        in_alpha = work.in_alpha(grads.alpha, inputs.alpha)
    in_query, in_key, in_value, in_mask = (
        None if grad is None or tensor is None else work.shaped(grad).sum_to_size(tensor.shape)
        for grad, tensor in (
            (grads.query, inputs.query),
            (grads.key, inputs.key),
            (grads.value, inputs.value),
            (grads.mask, inputs.mask),
        )
    )
    return in_query, in_key, in_value, in_alpha, in_mask


@dataclass(frozen=True)
class _Gradients:
    """Gradients of all heads, which groups write; None where they are not wanted.

    Attributes:
        query, key, value: ``(outer, heads, rows, size)``.
        alpha: ``(count, queries)``, float64.
        mask: ``(outer, heads, queries, keys)``.
    """

    query: Tensor | None
    key: Tensor | None
    value: Tensor | None
    alpha: Tensor | None
    mask: Tensor | None

    @classmethod
    def empty(cls, inputs: Inputs, work: _Work, wanted: Sequence[bool]) -> _Gradients:
        """Return memory for the gradients that are wanted."""
        of_query, of_key, of_value, of_alpha, of_mask = wanted[:5]
        value = None
        if of_value:
            assert inputs.value is not None
            value = work.new(*inputs.value.shape[-2:])
        alpha = None
        if of_alpha:
            alpha = inputs.query.new_empty(work.count, work.queries, dtype=torch.float64)
        return cls(
            query=work.new(*inputs.query.shape[-2:]) if of_query else None,
            key=work.new(*inputs.key.shape[-2:]) if of_key else None,
            value=value,
            alpha=alpha,
            mask=work.new(work.queries, work.keys) if of_mask else None,
        )


def _write_group(
    inputs: Inputs, work: _Work, group: _Group, weights: Tensor, upstream: Tensor, grads: _Gradients
) -> None:
    """Write the gradients of a group of heads.

    Args:
        inputs: of attention.
        work: of the inputs.
        group: the heads.
        weights: ``(outer, heads, queries, keys)``, as :func:`forward` keeps them.
        upstream: ``(outer, heads, queries, value size)``, the gradient in the output; without
            values, that in the weights.
        grads: where to write.
    """
    weights, upstream = group.of(weights), group.of(upstream)
    in_scores = torch.empty_like(weights) if grads.mask is None else group.of(grads.mask)
    dropped = torch.empty_like(weights) if inputs.dropout_p > 0 else None
    if work.value is None:
        in_scores.copy_(upstream)
    else:
        torch.bmm(upstream, group.of(work.value).mT, out=in_scores)
    # In place: from here on it is the gradient in the scores. The mask is added to scaled scores,
    # so if its gradient is wanted the pass does not scale, and `backward` scales in the end.
    work.run(
        module.backward,
        group,
        scale=inputs.scale if grads.mask is None else 1.0,
        weights=weights,
        used=dropped,
        incoming=in_scores,
        gradient=in_scores,
        alpha_gradient=None if grads.alpha is None else grads.alpha[group.number :],
    )
    if grads.query is not None:
        torch.bmm(in_scores, group.of(work.key), out=group.of(grads.query))
    if grads.key is not None:
        torch.bmm(in_scores.mT, group.of(work.query), out=group.of(grads.key))
    if grads.value is not None:
        used = weights if dropped is None else dropped
        torch.bmm(used.mT, upstream, out=group.of(grads.value))


@dataclass(frozen=True)
class _Group:
    """Some heads of one outer index, or all heads of several.

    Attributes:
        number: of the first head, if all are counted.
        outer: of the outer indices.
        heads: of each.
    """

    number: int
    outer: slice
    heads: slice

    def of(self, tensor: Tensor) -> Tensor:
        """Return the part ``(count, rows, columns)`` of ``(outer, heads, rows, columns)``.

        It is a view, through which results are written: the two slices are neighbours in memory.
        """
        return tensor[self.outer, self.heads].flatten(0, 1)


class _Work(Leading):
    """The inputs as C++ takes them, and the groups of heads.

    Attributes:
        query, key, value: ``(outer, heads, rows, size)``.
        seed: of dropout, which `forward` draws.
    """

    def __init__(self, inputs: Inputs) -> None:
        super().__init__(inputs)
        self.query, self.key = self.of(inputs.query), self.of(inputs.key)
        self.value = None if inputs.value is None else self.of(inputs.value)
        self.seed = 0
        self._dropout_p = inputs.dropout_p
        alpha = torch.as_tensor(inputs.alpha, dtype=torch.float64, device="cpu")
        self._alpha = alpha.detach().expand(self.heads, 1, 1).contiguous()
        self._mask = None if inputs.mask is None else self._with_adjacent_keys(inputs.mask)
        self._mask_kind = CAUSAL if inputs.is_causal else NO_MASK
        if self._mask is not None:
            self._mask_kind = BOOLEANS if self._mask.dtype == torch.bool else NUMBERS

    def _with_adjacent_keys(self, mask: Tensor) -> Tensor:
        """Return a mask ``(outer, heads, queries, keys)``; all but its keys may repeat memory."""
        if not mask.dim() or mask.stride(-1) != 1 or mask.shape[-1] == 1:
            mask = mask.expand(*mask.shape[:-1], self.keys).contiguous()
        return self.of_mask(mask)

    def new(self, rows: int, columns: int) -> Tensor:
        """Return memory ``(outer, heads, rows, columns)``."""
        return self.query.new_empty(self.outer, self.heads, rows, columns)

    def groups(self) -> Iterator[_Group]:
        """Yield groups of heads whose scores stay in the cache."""
        scores = self.queries * self.keys * self.query.itemsize  # bytes
        together = min(max(_GROUP_BYTES // scores, 1), self.count)
        step, within = max(together // self.heads, 1), min(together, self.heads)
        for outer in range(0, self.outer, step):
            for head in range(0, self.heads, within):
                yield _Group(
                    outer * self.heads + head,
                    slice(outer, outer + step),
                    slice(head, head + within),
                )

    def run(
        self,
        function: Callable[..., None],
        group: _Group,
        *,
        scale: float,
        weights: Tensor,
        used: Tensor | None,
        incoming: Tensor | None = None,
        gradient: Tensor | None = None,
        alpha_gradient: Tensor | None = None,
    ) -> None:
        """Run a pass in C++ over the rows of a group; see `Heads` for the arguments."""
        strides = (0, 0, 0) if self._mask is None else self._mask.stride()[:3]
        heads = Heads(
            first=group.number,
            queries=self.queries,
            alpha=self._alpha,
            heads=self.heads,
            mask=self._mask,
            mask_kind=self._mask_kind,
            mask_outer=strides[0],
            mask_head=strides[1],
            mask_row=strides[2],
            scale=scale,
            dropped_part=self._dropout_p,
            seed=self.seed,
            weights=weights,
            used=used,
            incoming=incoming,
            gradient=gradient,
            alpha_gradient=alpha_gradient,
        )
        run(function, weights, heads)
