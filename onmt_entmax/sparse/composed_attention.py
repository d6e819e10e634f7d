"""Attention with entmax by PyTorch's operations, for inputs that no backend covers.

Backends do not cover some alphas, types, masks and devices; second derivatives; and what PyTorch
records without computing it, such as traces and compiled graphs.
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
        inputs: the inputs, see `Inputs` for the shapes.
        factors: factors of dropout that were drawn before, ``(..., queries, keys)``; None: they are
            drawn here, with the probability `Inputs.dropout_p`.

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
    if isinstance(alpha, Tensor):  # (heads, 1, 1)
        # Without leading dimensions, there is a single head, and scores are (queries, keys).
        alpha = alpha if scores.dim() > 2 else alpha.reshape(())
        # Heads may share queries and keys, and differ in their alphas alone.
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
    fewer numbers than the products. But the C++ code and the GPU kernels scale the products, and a
    trace that stands in for them should give the same digits. No GPU kernel solves an alpha above
    2, so such a trace scales the queries. A trace cannot read a tensor of alphas, and takes them to
    be at most 2, as learned alphas are.
    """
    return torch.jit.is_tracing() and (isinstance(alpha, Tensor) or alpha <= 2)


def _masked_weights(scores: Tensor, alpha: float | Tensor, mask: Tensor) -> Tensor:
    """Return entmax of masked scores, with zeros for a query without keys.

    Args:
        scores: ``(..., queries, keys)``.
        alpha: a number, or ``(heads, 1, 1)``; for scores ``(queries, keys)``, ``()``.
        mask: broadcasts to the scores; booleans, true where a query attends, or numbers to add.

    Returns:
        ``(..., queries, keys)``.
    """
    is_boolean = mask.dtype == torch.bool
    scores = torch.where(mask, scores, -torch.inf) if is_boolean else scores + mask
    is_empty = (scores == -torch.inf).all(-1, keepdim=True)  # (..., queries, 1)
    # Entmax refuses a row of -inf: zeros stand in for its scores.
    return torch.where(is_empty, 0.0, entmax(torch.where(is_empty, 0.0, scores), alpha))


def composed_attention_gradients(
    inputs: Inputs, factors: Tensor | None, gradient: Tensor, wanted: Sequence[bool]
) -> list[Tensor | None]:
    """Return the gradients of `composed_attention` with respect to its inputs.

    If autograd records a graph, for second derivatives, they can be differentiated again.

    Args:
        inputs: the inputs of `composed_attention`.
        factors: the factors of dropout that `composed_attention` multiplies the weights by.
        gradient: upstream gradient with respect to the output of `composed_attention`.
        wanted: for each field of the inputs, whether its gradient is wanted.

    Returns:
        For each field, its gradient in its shape, or None if it is not wanted.
    """
    with_graph = torch.is_grad_enabled()
    fields: list[Any] = [*inputs]
    with torch.enable_grad():
        # One tensor may be several of the inputs, or be computed from another input. So autograd
        # gets an alias of each input: its gradient is the one through this input alone.
        aliases = [
            field.view_as(field) if wants else field
            for field, wants in zip(fields, wanted, strict=True)
        ]
        output = composed_attention(Inputs(*aliases), factors)
        leaves = [alias for alias, wants in zip(aliases, wanted, strict=True) if wants]
        grads = iter(torch.autograd.grad(output, leaves, gradient, create_graph=with_graph))
    return [next(grads) if wants else None for wants in wanted]
