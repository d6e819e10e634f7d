"""Attention in C++, for float32 and float64 on a CPU.

It works on one group of heads at a time (cpu_head_tensors.py), whose scores stay in the cache. A
product writes the scores, one pass turns them into weights in place (csrc/native_attention.h), and
another product makes the output. The gradient needs the inputs and the weights; its pass turns
gradients in weights into gradients in scores.

The noise of dropout is not stored: weights that are dropped are kept as negative numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from onmt_entmax.sparse.backends.cpu_head_tensors import HeadGroup, HeadTensors
from onmt_entmax.sparse.backends.cpu_module import module
from onmt_entmax.sparse.inputs import Inputs


def forward(inputs: Inputs, keep: bool) -> tuple[Tensor, tuple[Tensor | None]]:
    """Return attention ``(..., queries, value size)``, or without values its weights.

    Args:
        inputs: see `Inputs`.
        keep: whether :func:`backward` will be called.

    Returns:
        The result, and what :func:`backward` needs: the weights ``(..., queries, keys)``, negative
        where dropout drops them, or None.
    """
    tensors = HeadTensors(inputs)
    seed = int(torch.randint(1 << 62, ())) if inputs.dropout_p > 0 else 0  # fits an int64
    if tensors.value is None:
        weights = _weights(tensors, seed)
        return weights, (weights,)
    return _attention(tensors, tensors.value, seed, keep)


def _weights(tensors: HeadTensors, seed: int) -> Tensor:
    """Return the weights ``(..., queries, keys)``."""
    layout = tensors.layout
    weights = tensors.empty(layout.queries, layout.keys)
    for group in tensors.groups():
        _write_weights(tensors, group, seed, group.slice_of(weights))
    return layout.merge(weights)


def _attention(
    tensors: HeadTensors, value: Tensor, seed: int, keep: bool
) -> tuple[Tensor, tuple[Tensor | None]]:
    """Return attention to values ``(outer, heads, keys, value size)``; see :func:`forward`."""
    layout = tensors.layout
    output = tensors.empty(layout.queries, value.shape[-1])
    weights = tensors.empty(layout.queries, layout.keys) if keep else None
    for group in tensors.groups():
        query = group.slice_of(tensors.query)
        if weights is None:
            of_group = query.new_empty(*query.shape[:2], layout.keys)
        else:
            of_group = group.slice_of(weights)
        used = _write_weights(tensors, group, seed, of_group)
        torch.bmm(used, group.slice_of(value), out=group.slice_of(output))
    return layout.merge(output), (None if weights is None else layout.merge(weights),)


def _write_weights(tensors: HeadTensors, group: HeadGroup, seed: int, out: Tensor) -> Tensor:
    """Write the weights of a group of heads, and return them as dropout leaves them.

    Args:
        tensors: the tensors of all heads.
        group: the group of heads.
        seed: seed of dropout.
        out: ``(count, queries, keys)``, receives weights before dropout, negative if it drops them.
    """
    query, key = group.slice_of(tensors.query), group.slice_of(tensors.key)
    used = torch.empty_like(out) if tensors.dropout_p > 0 else None
    torch.bmm(query, key.mT, out=out)
    # In place: `out` has scores before, and weights after.
    tensors.run(module.forward, group, weights=out, used=used, scale=tensors.scale, seed=seed)
    return out if used is None else used


def backward(
    inputs: Inputs, kept: Sequence[Tensor], gradient: Tensor, wanted: Sequence[bool]
) -> tuple[Tensor | None, ...]:
    """Return the gradients in query, key, value, alpha and mask; None where they are not wanted.

    Args:
        inputs: the inputs of :func:`forward`.
        kept: the second result of :func:`forward`.
        gradient: gradient in the first result of :func:`forward`.
        wanted: for each of the five gradients, whether it is wanted.
    """
    tensors = HeadTensors(inputs)
    layout = tensors.layout
    weights, upstream = layout.split(kept[0]), layout.split(gradient)
    grads = _Gradients.empty(inputs, tensors, wanted)
    for group in tensors.groups():
        _write_gradients(tensors, group, weights, upstream, grads)
    in_alpha = None
    if grads.alpha is not None:
        assert isinstance(inputs.alpha, Tensor)
        in_alpha = layout.sum_by_head(grads.alpha).view(inputs.alpha.shape).to(inputs.alpha.dtype)

    def in_shape_of(tensor: Tensor | None, grad: Tensor | None) -> Tensor | None:
        # An input that was broadcast gets the sum of the gradients of its copies.
        if tensor is None or grad is None:
            return None
        return layout.merge(grad).sum_to_size(tensor.shape)

    return (
        in_shape_of(inputs.query, grads.query),
        in_shape_of(inputs.key, grads.key),
        in_shape_of(inputs.value, grads.value),
        in_alpha,
        in_shape_of(inputs.mask, grads.mask),
    )


def dropout_factors(inputs: Inputs, kept: Sequence[Tensor]) -> Tensor:
    """Return the factors by which :func:`forward` multiplied the weights: 0 where it dropped them.

    A weight outside the support, which is 0 in any case, gets the factor 0 too.

    Args:
        inputs: the inputs of :func:`forward`, with a dropout_p above 0.
        kept: the second result of :func:`forward`.

    Returns:
        Factors ``(..., queries, keys)``.
    """
    (weights,) = kept
    factor = 1 / (1 - inputs.dropout_p) if inputs.dropout_p < 1 else 0.0
    return (weights > 0) * factor


@dataclass(frozen=True)
class _Gradients:
    """Gradients of all heads, which groups write; None where they are not wanted.

    Attributes:
        query, key, value: ``(outer, heads, rows, size)``.
        alpha: ``(total heads, queries)``, float64.
        mask: ``(outer, heads, queries, keys)``.
    """

    query: Tensor | None
    key: Tensor | None
    value: Tensor | None
    alpha: Tensor | None
    mask: Tensor | None

    @classmethod
    def empty(cls, inputs: Inputs, tensors: HeadTensors, wanted: Sequence[bool]) -> _Gradients:
        """Return memory for the gradients that are wanted."""
        of_query, of_key, of_value, of_alpha, of_mask = wanted[:5]
        layout = tensors.layout
        value = None
        if of_value:
            assert inputs.value is not None
            value = tensors.empty(*inputs.value.shape[-2:])
        alpha = None
        if of_alpha:
            alpha = inputs.query.new_empty(layout.total_heads, layout.queries, dtype=torch.float64)
        return cls(
            query=tensors.empty(*inputs.query.shape[-2:]) if of_query else None,
            key=tensors.empty(*inputs.key.shape[-2:]) if of_key else None,
            value=value,
            alpha=alpha,
            mask=tensors.empty(layout.queries, layout.keys) if of_mask else None,
        )


def _write_gradients(
    tensors: HeadTensors, group: HeadGroup, weights: Tensor, upstream: Tensor, grads: _Gradients
) -> None:
    """Write the gradients of a group of heads.

    Args:
        tensors: the tensors of all heads.
        group: the group of heads.
        weights: ``(outer, heads, queries, keys)``, as :func:`forward` keeps them.
        upstream: ``(outer, heads, queries, value size)``, the gradient in the output; without
            values, that in the weights.
        grads: where to write.
    """
    weights, upstream = group.slice_of(weights), group.slice_of(upstream)
    in_scores = torch.empty_like(weights) if grads.mask is None else group.slice_of(grads.mask)
    used = torch.empty_like(weights) if tensors.dropout_p > 0 else None
    if tensors.value is None:
        in_scores.copy_(upstream)
    else:
        torch.bmm(upstream, group.slice_of(tensors.value).mT, out=in_scores)
    # A mask is added to scaled scores, so its gradient is that in scaled scores. If it is wanted,
    # the pass does not scale, and the products do.
    pass_scale, product_scale = tensors.scale, 1.0
    if grads.mask is not None:
        pass_scale, product_scale = 1.0, tensors.scale
    # In place: `in_scores` has the gradient in the weights before, and that in the scores after.
    tensors.run(
        module.backward,
        group,
        scale=pass_scale,
        weights=weights,
        used=used,
        incoming=in_scores,
        gradient=in_scores,
        alpha_gradient=None if grads.alpha is None else grads.alpha[group.first_head :],
    )
    if grads.query is not None:
        key, in_query = group.slice_of(tensors.key), group.slice_of(grads.query)
        _write_scaled_product(in_scores, key, product_scale, out=in_query)
    if grads.key is not None:
        query, in_key = group.slice_of(tensors.query), group.slice_of(grads.key)
        _write_scaled_product(in_scores.mT, query, product_scale, out=in_key)
    if grads.value is not None:
        used = weights if used is None else used
        torch.bmm(used.mT, upstream, out=group.slice_of(grads.value))


def _write_scaled_product(left: Tensor, right: Tensor, scale: float, out: Tensor) -> None:
    """Write ``left @ right * scale`` of batches of matrices."""
    torch.bmm(left, right, out=out)
    if scale != 1:
        out.mul_(scale)
