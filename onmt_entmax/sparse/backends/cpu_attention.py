"""Attention in C++, for float32 and float64 on a CPU.

It works on one group of heads at a time (cpu_head_tensors.py), whose scores stay in the cache. A
product writes the scores, a pass in C++ turns them into weights in place (csrc/native_attention.h),
and another product computes the output. The backward pass needs the inputs and the weights. Its
pass in C++ (csrc/native_attention_gradient.h) turns gradients with respect to weights into
gradients with respect to scores.

No mask of dropout is stored: the weights that it drops are kept as negative numbers.
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
    """Return attention, or without values its weights.

    Args:
        inputs: the inputs, float32 or float64, none of them empty.
        keep: whether :func:`backward` will be called.

    Returns:
        The attention ``(..., queries, value size)``, or the weights ``(..., queries, keys)``; and
        what :func:`backward` needs: the weights ``(..., queries, keys)`` before dropout, negative
        where it drops them; None if they are not to be kept.
    """
    tensors = HeadTensors(inputs)
    seed = int(torch.randint(1 << 62, ())) if inputs.dropout_p > 0 else 0  # fits an int64
    if tensors.value is None:
        weights = _weights(tensors, seed)
        return weights, (weights,)
    return _attention(tensors, tensors.value, seed, keep)


def _weights(tensors: HeadTensors, seed: int) -> Tensor:
    """Return the weights ``(..., queries, keys)``; :func:`forward` has the arguments."""
    layout = tensors.layout
    weights = tensors.empty(layout.queries, layout.keys)
    for group in tensors.groups():
        _write_weights(tensors, group, seed, group.slice_of(weights))
    return layout.merge(weights)


def _attention(
    tensors: HeadTensors, value: Tensor, seed: int, keep: bool
) -> tuple[Tensor, tuple[Tensor | None]]:
    """Return attention, and the weights if they are to be kept, as :func:`forward` does.

    Args:
        tensors: the tensors of all heads.
        value: their values, ``(outer, heads, keys, value size)``.
        seed: seed of dropout.
        keep: whether the weights are kept for :func:`backward`.
    """
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

    Returns:
        ``(count, queries, keys)``; without dropout, `out` itself.
    """
    query, key = group.slice_of(tensors.query), group.slice_of(tensors.key)
    used = torch.empty_like(out) if tensors.dropout_p > 0 else None
    torch.bmm(query, key.mT, out=out)
    # This replaces the scores in `out` by weights.
    tensors.run(module.forward, group, weights=out, used=used, scale=tensors.scale, seed=seed)
    return out if used is None else used


def backward(
    inputs: Inputs, kept: Sequence[Tensor], gradient: Tensor, wanted: Sequence[bool]
) -> tuple[Tensor | None, ...]:
    """Return the gradients with respect to query, key, value, alpha and mask, in this order.

    Args:
        inputs: the inputs of :func:`forward`.
        kept: the second result of :func:`forward`.
        gradient: upstream gradient with respect to the first result of :func:`forward`.
        wanted: for each field of `Inputs`, whether its gradient is wanted.

    Returns:
        Gradients in the shapes of the inputs; None where they are not wanted.
    """
    tensors = HeadTensors(inputs)
    layout = tensors.layout
    weights, upstream = layout.split(kept[0]), layout.split(gradient)
    grads = _Gradients.empty(inputs, tensors, wanted)
    for group in tensors.groups():
        _write_gradients(tensors, group, weights, upstream, grads)
    grad_alpha = None
    if grads.alpha is not None:
        assert isinstance(inputs.alpha, Tensor)
        grad_alpha = layout.sum_by_head(grads.alpha).view(inputs.alpha.shape).to(inputs.alpha.dtype)

    def in_shape_of(tensor: Tensor | None, grad: Tensor | None) -> Tensor | None:
        # An input that was broadcast gets the sum of the gradients of its copies.
        if tensor is None or grad is None:
            return None
        return layout.merge(grad).sum_to_size(tensor.shape)

    return (
        in_shape_of(inputs.query, grads.query),
        in_shape_of(inputs.key, grads.key),
        in_shape_of(inputs.value, grads.value),
        grad_alpha,
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
    """Gradients with respect to the inputs of all heads; None where they are not wanted.

    Each group of heads writes its part.

    Attributes:
        query: ``(outer, heads, queries, size)``.
        key: ``(outer, heads, keys, size)``.
        value: ``(outer, heads, keys, value size)``.
        alpha: the part of each query, ``(total heads, queries)``, float64.
        mask: ``(outer, heads, queries, keys)``.
    """

    query: Tensor | None
    key: Tensor | None
    value: Tensor | None
    alpha: Tensor | None
    mask: Tensor | None

    @classmethod
    def empty(cls, inputs: Inputs, tensors: HeadTensors, wanted: Sequence[bool]) -> _Gradients:
        """Return memory for the gradients that are wanted; :func:`backward` has the arguments."""
        wants_query, wants_key, wants_value, wants_alpha, wants_mask = wanted[:5]
        layout = tensors.layout
        value = None
        if wants_value:
            assert inputs.value is not None
            value = tensors.empty(*inputs.value.shape[-2:])
        alpha = None
        if wants_alpha:
            alpha = inputs.query.new_empty(layout.total_heads, layout.queries, dtype=torch.float64)
        return cls(
            query=tensors.empty(*inputs.query.shape[-2:]) if wants_query else None,
            key=tensors.empty(*inputs.key.shape[-2:]) if wants_key else None,
            value=value,
            alpha=alpha,
            mask=tensors.empty(layout.queries, layout.keys) if wants_mask else None,
        )


def _write_gradients(
    tensors: HeadTensors, group: HeadGroup, weights: Tensor, upstream: Tensor, grads: _Gradients
) -> None:
    """Write the gradients of a group of heads.

    Args:
        tensors: the tensors of all heads.
        group: the group of heads.
        weights: ``(outer, heads, queries, keys)``, as :func:`forward` keeps them.
        upstream: gradient with respect to the output, ``(outer, heads, queries, value size)``;
            without values, with respect to the weights, ``(outer, heads, queries, keys)``.
        grads: receives the gradients.
    """
    weights, upstream = group.slice_of(weights), group.slice_of(upstream)
    grad_scores = torch.empty_like(weights) if grads.mask is None else group.slice_of(grads.mask)
    used = torch.empty_like(weights) if tensors.dropout_p > 0 else None
    if tensors.value is None:
        grad_scores.copy_(upstream)
    else:
        torch.bmm(upstream, group.slice_of(tensors.value).mT, out=grad_scores)
    # A mask is added to scaled scores, so its gradient is the one with respect to scaled scores. If
    # it is wanted, the pass in C++ does not scale, and the products below do.
    pass_scale, product_scale = tensors.scale, 1.0
    if grads.mask is not None:
        pass_scale, product_scale = 1.0, tensors.scale
    # In `grad_scores`, this replaces gradients with respect to weights by gradients with respect to
    # scores.
    tensors.run(
        module.backward,
        group,
        scale=pass_scale,
        weights=weights,
        used=used,
        incoming=grad_scores,
        gradient=grad_scores,
        alpha_gradient=None if grads.alpha is None else grads.alpha[group.first_head :],
    )
    if grads.query is not None:
        key, grad_query = group.slice_of(tensors.key), group.slice_of(grads.query)
        _write_scaled_product(grad_scores, key, product_scale, out=grad_query)
    if grads.key is not None:
        query, grad_key = group.slice_of(tensors.query), group.slice_of(grads.key)
        _write_scaled_product(grad_scores.mT, query, product_scale, out=grad_key)
    if grads.value is not None:
        used = weights if used is None else used
        torch.bmm(used.mT, upstream, out=group.slice_of(grads.value))


def _write_scaled_product(left: Tensor, right: Tensor, scale: float, out: Tensor) -> None:
    """Write ``left @ right * scale`` of batches of matrices."""
    torch.bmm(left, right, out=out)
    if scale != 1:
        out.mul_(scale)
