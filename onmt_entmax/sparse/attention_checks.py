"""Checks of the arguments of attention.

`attention` calls them in this order: `checked_repeats` for grouped queries, `checked_heads`, which
checks all but alpha, and `checked_head_alphas`.
"""

from __future__ import annotations

import torch
from torch import Tensor

from onmt_entmax.sparse.arguments import alpha_of_rows
from onmt_entmax.sparse.head_layout import leading_shape


def checked_head_alphas(alpha: float | Tensor, query: Tensor, heads: int) -> float | Tensor:
    """Return alpha as a number, or as a tensor ``(heads, 1, 1)``.

    Args:
        alpha: a number, or a tensor with one alpha, or with one for each head.
        query: a tensor on the device where alpha must be.
        heads: number of heads.

    Raises:
        ValueError: see `entmax_attention`.
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


def checked_repeats(query: Tensor, key: Tensor, value: Tensor | None) -> int:
    """Return how many heads of the query share one of the keys, for `enable_gqa`.

    Raises:
        ValueError: see `entmax_attention`.
    """
    tensors = [query, key, *([] if value is None else [value])]
    if any(tensor.dim() < 3 for tensor in tensors):
        raise ValueError("enable_gqa needs tensors with heads, (..., heads, length, size)")
    queries, keys, *values = (int(tensor.shape[-3]) for tensor in tensors)
    if not keys or queries % keys or any(number != keys for number in values):
        raise ValueError(
            f"enable_gqa needs as many heads of key as of value, a divisor of the {queries} heads "
            f"of query; key has {keys}" + "".join(f", value {number}" for number in values)
        )
    return queries // keys


def checked_heads(
    query: Tensor,
    key: Tensor,
    value: Tensor | None,
    mask: Tensor | None,
    dropout_p: float,
    is_causal: bool,
) -> int:
    """Check all arguments of attention except alpha, and return the number of heads.

    Raises:
        ValueError: see `entmax_attention`.
    """
    tensors = {"query": query, "key": key, **({} if value is None else {"value": value})}
    for name, tensor in tensors.items():
        if tensor.dim() < 2:
            raise ValueError(f"{name} needs two dimensions or more, got {tuple(tensor.shape)}")
        if tensor.device != query.device:
            raise ValueError(f"{name} is on {tensor.device}, query is on {query.device}")
        if tensor.dtype != query.dtype and not torch.is_autocast_enabled(query.device.type):
            raise ValueError(f"{name} is {tensor.dtype}, query is {query.dtype}, not the same")
    if not query.is_floating_point():
        raise ValueError(f"query must be floating point, got {query.dtype}")
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(
            f"query has vectors of size {query.shape[-1]}, key of size {key.shape[-1]}"
        )
    if value is not None and value.shape[-2] != key.shape[-2]:
        raise ValueError(f"key has length {key.shape[-2]}, value {value.shape[-2]}")
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
    return int(leading[-1]) if leading else 1


def _check_mask(mask: Tensor, device: torch.device, shape: tuple[int, ...]) -> None:
    """Check a mask for weights ``(..., queries, keys)`` of a shape.

    Raises:
        ValueError: see `entmax_attention`.
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
