"""Checks of the arguments of attention.

`entmax_attention` lists the reasons for which they raise ValueError. A later check relies on the
earlier ones, so `attention` calls them in the order of this file.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from onmt_entmax.sparse.arguments import alpha_of_rows
from onmt_entmax.sparse.head_layout import leading_shape
from onmt_entmax.sparse.recording import size_of


def checked_repeats(query: Tensor, key: Tensor, value: Tensor | None) -> int:
    """Return how many heads of the query share a head of the keys, for `enable_gqa`.

    Args:
        query: ``(..., query heads, queries, size)``.
        key: ``(..., key heads, keys, size)``.
        value: ``(..., key heads, keys, value size)``, or None.

    Raises:
        ValueError: if a tensor has no dimension of heads, or the numbers of heads do not fit.
    """
    tensors = [query, key, *([] if value is None else [value])]
    if any(tensor.dim() < 3 for tensor in tensors):
        raise ValueError("enable_gqa needs tensors with heads, (..., heads, length, size)")
    query_heads, key_heads, *value_heads = (int(tensor.shape[-3]) for tensor in tensors)
    if not key_heads or query_heads % key_heads or any(n != key_heads for n in value_heads):
        raise ValueError(
            f"enable_gqa needs as many heads of key as of value, a divisor of the {query_heads} "
            f"heads of query; key has {key_heads}" + "".join(f", value {n}" for n in value_heads)
        )
    return query_heads // key_heads


def check_inputs(
    query: Tensor,
    key: Tensor,
    value: Tensor | None,
    mask: Tensor | None,
    dropout_p: float,
    is_causal: bool,
) -> None:
    """Check the arguments of attention other than alpha and scale.

    Args:
        query: ``(..., queries, size)``.
        key: ``(..., keys, size)``, on the device and in the type of ``query``.
        value: ``(..., keys, value size)``, likewise, or None.
        mask: broadcasts to ``(..., queries, keys)``, or None.
        dropout_p: a probability.
        is_causal: whether query i attends to keys 0 to i only; excludes a mask.

    Raises:
        ValueError: if an argument is wrong, or does not fit the others.
    """
    tensors = {"query": query, "key": key, **({} if value is None else {"value": value})}
    for name, tensor in tensors.items():
        _check_like_query(name, tensor, query)
    if not query.is_floating_point():
        raise ValueError(f"query must be floating point, got {query.dtype}")
    _check_sizes(query, key, value)
    if not 0 <= dropout_p <= 1:
        raise ValueError(f"dropout_p must be from 0 to 1, got {dropout_p}")
    try:
        leading = leading_shape(query, key, value)
    except RuntimeError:
        shapes = ", ".join(f"{name} {tuple(tensor.shape)}" for name, tensor in tensors.items())
        raise ValueError(f"leading dimensions do not broadcast: {shapes}") from None
    if mask is not None:
        if is_causal:
            raise ValueError("give attn_mask or is_causal, not both")
        _check_mask(mask, query.device, (*leading, query.shape[-2], key.shape[-2]))


def _check_like_query(name: str, tensor: Tensor, query: Tensor) -> None:
    """Check that a tensor has two dimensions or more, and the query's device and type.

    Args:
        name: name of the tensor, for the message.
        tensor: query, key or value.
        query: the query.

    Raises:
        ValueError: if it has not.
    """
    if tensor.dim() < 2:
        raise ValueError(f"{name} needs two dimensions or more, got {tuple(tensor.shape)}")
    if tensor.device != query.device:
        raise ValueError(f"{name} is on {tensor.device}, query is on {query.device}")
    # Under autocast the types may differ: they are converted to its type later.
    if tensor.dtype != query.dtype and not torch.is_autocast_enabled(query.device.type):
        raise ValueError(f"{name} is {tensor.dtype}, query is {query.dtype}, not the same")


def _check_sizes(query: Tensor, key: Tensor, value: Tensor | None) -> None:
    """Check that queries and keys have the same size, and that there is a value for each key.

    Args:
        query: ``(..., queries, size)``.
        key: ``(..., keys, size)``.
        value: ``(..., keys, value size)``, or None.

    Raises:
        ValueError: if this is not so.
    """
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(
            f"query has vectors of size {query.shape[-1]}, key of size {key.shape[-1]}"
        )
    if value is not None and value.shape[-2] != key.shape[-2]:
        raise ValueError(f"key has length {key.shape[-2]}, value {value.shape[-2]}")


def _check_mask(mask: Tensor, device: torch.device, shape: tuple[int, ...]) -> None:
    """Check the type and the device of a mask, and that it broadcasts to the weights.

    Args:
        mask: the mask.
        device: the device of the query.
        shape: the shape of the weights, ``(..., queries, keys)``.

    Raises:
        ValueError: if one of them is wrong.
    """
    if mask.dtype != torch.bool and not mask.is_floating_point():
        raise ValueError(f"attn_mask must be boolean or floating point, got {mask.dtype}")
    if mask.device != device:
        raise ValueError(f"attn_mask is on {mask.device}, query is on {device}")
    try:
        mask.expand(shape)
    except RuntimeError:
        raise ValueError(
            f"attn_mask of shape {tuple(mask.shape)} does not broadcast to {shape}"
        ) from None


def head_count(query: Tensor, key: Tensor, value: Tensor | None) -> int:
    """Return the number of heads: the last leading dimension, 1 if there is none.

    Args:
        query: ``(..., heads, queries, size)`` or ``(queries, size)``.
        key: ``(..., heads, keys, size)``; its leading dimensions broadcast with those of ``query``.
        value: ``(..., heads, keys, value size)``, likewise, or None.
    """
    leading = leading_shape(query, key, value)
    return int(leading[-1]) if leading else 1


def checked_head_alphas(alpha: float | Tensor, query: Tensor, heads: int) -> float | Tensor:
    """Return alpha as a number, or as a tensor ``(heads, 1, 1)``.

    Args:
        alpha: a number, or a tensor with one alpha, or with one for each head.
        query: a tensor on the device where alpha must be.
        heads: number of heads.

    Raises:
        ValueError: if an alpha is below 1, infinite or nan, or the number of alphas does not fit.
    """
    if not isinstance(alpha, Tensor):
        return alpha_of_rows(alpha, query, -1)
    if alpha.shape not in ((), (1,), (heads,)):
        raise ValueError(
            f"alpha of shape {tuple(alpha.shape)} does not fit the heads; "
            f"give a number or a tensor ({heads},)"
        )
    alpha = alpha_of_rows(alpha.reshape(-1, 1), query.new_empty(heads, 1), -1)
    return alpha.unsqueeze(-1) if isinstance(alpha, Tensor) else alpha


def checked_scale(scale: float | None, query: Tensor) -> Any:
    """Return the scale of the scores.

    Args:
        scale: a number; None: the default, ``1 / sqrt(size)``.
        query: ``(..., queries, size)``.

    Returns:
        A number. While `torch.jit.trace` records, the default is a tensor ``()``.

    Raises:
        ValueError: if the scale is a tensor.
    """
    is_tracing = torch.jit.is_tracing()
    if isinstance(scale, Tensor) and not is_tracing:
        raise ValueError("scale must be a number; multiply query by a scale that is learned")
    if scale is not None:
        return scale
    size: Any = size_of(query, -1)
    return size.rsqrt() if is_tracing else 1 / math.sqrt(max(size, 1))
