"""Scaled dot-product attention with entmax, with the interface of PyTorch's.

Source: Correia, Niculae and Martins (2019), where each head has its own alpha.
"""

from typing import Any

import torch
from torch import Tensor

from onmt_entmax.sparse.attention_backends import attention_by_backend
from onmt_entmax.sparse.attention_checks import (
    check_inputs,
    checked_head_alphas,
    checked_repeats,
    checked_scale,
    head_count,
)
from onmt_entmax.sparse.inputs import Inputs
from onmt_entmax.sparse.precision import working_type
from onmt_entmax.sparse.recording import check_shapes


def entmax_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *misplaced: Any,
    alpha: float | Tensor = 1.5,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Attend with entmax weights: PyTorch's `scaled_dot_product_attention` with an alpha.

    The weights are :func:`~onmt_entmax.entmax` of ``query @ key.mT * scale`` over the keys. They
    are exactly 0 outside their support; at alpha = 1 they are softmax's. A query without any key
    gets zeros and passes no gradient on, at alpha = 1 too, where PyTorch's softmax returns nan. All
    parameters after ``value`` are given by keyword.

    Args:
        query: ``(..., queries, size)``, floating point; leading dimensions broadcast.
        key: ``(..., keys, size)``.
        value: ``(..., keys, value size)``.
        misplaced: must be empty. It catches arguments that are given by position, for an error
            that says what to write.
        alpha: a number >= 1, or one for each head: a tensor ``(heads,)`` where the leading
            dimensions are ``(..., heads)``. A tensor gets its gradient; keep it above 1, for
            example as ``1 + sigmoid(a)``.
        attn_mask: broadcasts to ``(..., queries, keys)``. Booleans: a query attends where it is
            true. Numbers: added to the scores, where -inf closes a key; they get their gradient.
        dropout_p: the probability with which a weight is dropped; pass 0 in evaluation.
        is_causal: whether query i attends to keys 0 to i only.
        scale: factor of the scores, ``1 / sqrt(size)`` by default.
        enable_gqa: grouped query attention: several heads of ``query`` share a head of ``key`` and
            ``value``. These two have the same number of heads, a divisor of the number of heads of
            ``query``. Head h of ``query`` attends to head ``h // (query heads / key heads)``.

    Returns:
        ``(..., queries, value size)``, in the type of ``query``, or of autocast. Half types are
        computed in float32; the GPU kernels multiply them as they are, with sums in float32.

    Raises:
        ValueError: if alpha is below 1 or does not fit the heads; if shapes, types or devices do
            not fit; if dropout_p is not in [0, 1]; if scale is a tensor; or if attn_mask and
            is_causal are both given. On a GPU, an alpha below 1 in a tensor gives nan instead, to
            avoid a synchronisation.
        TypeError: if a parameter after ``value`` is given by position.
        RuntimeError: for second derivatives with dropout on a GPU.
    """
    if misplaced:
        raise _misplaced("entmax_attention(query, key, value", len(misplaced))
    return _attention(
        query,
        key,
        value,
        alpha=alpha,
        mask=attn_mask,
        dropout_p=dropout_p,
        is_causal=is_causal,
        scale=scale,
        enable_gqa=enable_gqa,
    )


def entmax_attention_weights(
    query: Tensor,
    key: Tensor,
    *misplaced: Any,
    alpha: float | Tensor = 1.5,
    attn_mask: Tensor | None = None,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Return the weights of :func:`entmax_attention`, ``(..., queries, keys)``.

    ``entmax_attention_weights(query, key, ...) @ value`` is the attention, but slower: use it where
    the weights are needed. They are float32 for the half types. A query without any key has zeros.

    Args and raises: as :func:`entmax_attention`. All parameters after ``key`` are given by keyword.
    """
    if misplaced:
        raise _misplaced("entmax_attention_weights(query, key", len(misplaced))
    return _attention(
        query,
        key,
        None,
        alpha=alpha,
        mask=attn_mask,
        dropout_p=0.0,
        is_causal=is_causal,
        scale=scale,
        enable_gqa=enable_gqa,
    )


def _misplaced(call: str, count: int) -> TypeError:
    """Return the error for parameters that are given by position."""
    return TypeError(
        f"{count} argument{'s' * (count > 1)} too many without a name; "
        f"write {call}, alpha=..., attn_mask=..., ...)"
    )


def _attention(
    query: Tensor,
    key: Tensor,
    value: Tensor | None,
    *,
    alpha: float | Tensor,
    mask: Tensor | None,
    dropout_p: float,
    is_causal: bool,
    scale: float | None,
    enable_gqa: bool,
) -> Tensor:
    """Check the arguments, and return attention, or without values its weights.

    Args:
        query: ``(..., queries, size)``.
        key: ``(..., keys, size)``.
        value: ``(..., keys, value size)``; None: the weights are the result.
        alpha: see :func:`entmax_attention`, as for all arguments below.
        mask: broadcasts to ``(..., queries, keys)``, or None.
        dropout_p: from 0 to 1.
        is_causal: whether query i attends to keys 0 to i only.
        scale: factor of the scores, or None for the default.
        enable_gqa: whether heads of the query share heads of key and value.
    """
    if enable_gqa:
        repeats = check_shapes(checked_repeats, query, key, value)
        key = _repeated(key, repeats)
        value = None if value is None else _repeated(value, repeats)
    check_shapes(check_inputs, query, key, value, mask, dropout_p, is_causal)
    heads = check_shapes(head_count, query, key, value)
    alpha = check_shapes(checked_head_alphas, alpha, query, heads)
    scale = checked_scale(scale, query)
    device, dtype = query.device.type, query.dtype
    if dtype != torch.float64 and torch.is_autocast_enabled(device):
        dtype = torch.get_autocast_dtype(device)
    with torch.autocast(device, enabled=False):
        inputs = Inputs(query, key, value, alpha, mask, is_causal, scale, dropout_p)
        return attention_by_backend(inputs.in_type(dtype), working_type(query))


def _repeated(tensor: Tensor, repeats: int) -> Tensor:
    """Return a tensor ``(..., heads, rows, columns)`` in which each head is repeated."""
    if repeats == 1:
        return tensor
    sizes = [-1] * (tensor.dim() - 2)
    return tensor.unsqueeze(-3).expand(*sizes, repeats, -1, -1).flatten(-4, -3)
