"""Attention with entmax by PyTorch's operations, where no backend computes it.

Backends leave out some alphas, types, masks and devices, second derivatives, and whatever PyTorch
only records: traces and compiled graphs.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import dropout

from onmt_entmax.sparse.inputs import Inputs
from onmt_entmax.sparse.mapping import entmax
from onmt_entmax.sparse.precision import working_type


def composed_attention(inputs: Inputs, factors: Tensor | None = None) -> Tensor:
    """Return attention by PyTorch's operations; if there are no values, its weights.

    Args:
        inputs: the arguments, with their shapes.
        factors: factors of dropout that were drawn before, ``(..., queries, keys)``; None: they are
            drawn here, with `Inputs.dropout_p`.

    Returns:
        Attention ``(..., queries, value size)`` in the type of the query, or weights
        ``(..., queries, keys)`` in the type they are computed in.
    """
    dtype = inputs.query.dtype
    inputs = inputs.in_type(working_type(inputs.query))
    weights = _weights(inputs)
    if factors is not None:
        weights = weights * factors
    elif inputs.dropout_p > 0:
        weights = dropout(weights, inputs.dropout_p)
    return weights if inputs.value is None else (weights @ inputs.value).to(dtype)


def _weights(inputs: Inputs) -> Tensor:
    """Return the weights ``(..., queries, keys)`` before dropout."""
    scores = _scaled_scores(inputs)
    alpha, mask = inputs.alpha, inputs.mask
    if isinstance(alpha, Tensor):  # (heads, 1, 1); queries and keys may be the same for all heads
        # Without leading dimensions, there is a single head, and scores are (queries, keys).
        alpha = alpha if scores.dim() > 2 else alpha.reshape(())
        scores, _ = torch.broadcast_tensors(scores, alpha)
    if inputs.is_causal:  # then there is no other mask
        mask = scores.new_ones(scores.shape[-2:], dtype=torch.bool).tril()
    return entmax(scores, alpha) if mask is None else _masked_weights(scores, alpha, mask)


def _scaled_scores(inputs: Inputs) -> Tensor:
    """Return the scores ``(..., queries, keys)``, scaled and not masked."""
    keys = inputs.key.transpose(-1, -2)  # (..., size, keys)
    if _scales_products(inputs.alpha):
        return (inputs.query @ keys) * inputs.scale
    return (inputs.query * inputs.scale) @ keys


def _scales_products(alpha: float | Tensor) -> bool:
    """Return whether the scale multiplies the products of queries and keys, or the queries alone.

    The results differ in their last digits. Scaling the queries is cheaper, since they usually have
    fewer numbers. But the C++ code and the GPU kernels scale the products, and a trace, which
    stands in for them, should give the same digits. No GPU kernel solves an alpha above 2, so such
    a trace scales the queries. A trace cannot read a tensor of alphas; it takes them to be at most
    2, as learned alphas are.
    """
    return torch.jit.is_tracing() and (isinstance(alpha, Tensor) or alpha <= 2)


def _masked_weights(scores: Tensor, alpha: float | Tensor, mask: Tensor) -> Tensor:
    """Return entmax of masked scores, with zeros for a query without keys.

    Args:
        scores: ``(..., queries, keys)``, as the result.
        alpha: a number, or ``(heads, 1, 1)``; without heads, a tensor without dimensions.
        mask: broadcasts to the scores; booleans, or numbers.
    """
    is_boolean = mask.dtype == torch.bool
    scores = torch.where(mask, scores, -torch.inf) if is_boolean else scores + mask
    is_empty = (scores == -torch.inf).all(-1, keepdim=True)  # (..., queries, 1)
    # Entmax refuses a row of -inf: zeros stand in for its scores.
    return torch.where(is_empty, 0.0, entmax(torch.where(is_empty, 0.0, scores), alpha))


def composed_attention_gradients(
    inputs: Inputs, factors: Tensor | None, gradient: Tensor, wanted: Sequence[bool]
) -> list[Tensor | None]:
    """Return the gradients of `composed_attention` in its inputs, None where they are not wanted.

    While autograd records, to compute gradients of gradients, they are differentiable again.

    Args:
        inputs: the inputs of `composed_attention`.
        factors: the factors of dropout of `composed_attention`.
        gradient: gradient in the output of `composed_attention`, in its shape.
        wanted: for each field of the inputs, whether its gradient is wanted.

    Returns:
        For each field, its gradient in its shape, or None.
    """
    with_graph = torch.is_grad_enabled()
    fields: list[Any] = [*inputs]
    with torch.enable_grad():
        # Aliases, since one tensor may be several of the inputs, or be computed from another one.
        # The gradient in an alias is that through this input alone.
        aliases = [
            field.view_as(field) if wants else field
            for field, wants in zip(fields, wanted, strict=True)
        ]
        output = composed_attention(Inputs(*aliases), factors)
        leaves = [alias for alias, wants in zip(aliases, wanted, strict=True) if wants]
        in_leaves = iter(torch.autograd.grad(output, leaves, gradient, create_graph=with_graph))
    return [next(in_leaves) if wants else None for wants in wanted]
