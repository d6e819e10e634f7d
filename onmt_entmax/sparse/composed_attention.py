"""Attention with entmax by PyTorch's operations, for what no backend covers.

That is alphas, types, masks and devices that backends leave out, traces and compiled graphs, and
second derivatives.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import dropout

from onmt_entmax.sparse.inputs import Inputs
from onmt_entmax.sparse.mapping import entmax
from onmt_entmax.sparse.precision import working_type


def composed(inputs: Inputs, factors: Tensor | None = None) -> Tensor:
    """Return attention by PyTorch's operations; if there are no values, its weights.

    Args:
        inputs: the arguments, with their shapes.
        factors: ``(..., queries, keys)``, which weights are multiplied by in the place of dropout.

    Returns:
        Attention ``(..., queries, value size)`` in the type of the query, or weights
        ``(..., queries, keys)`` in the type they are computed in.
    """
    dtype = inputs.query.dtype
    inputs = inputs.in_type(working_type(inputs.query))
    alpha, mask = inputs.alpha, inputs.mask
    scores = _scaled_scores(inputs)
    if isinstance(alpha, Tensor):
        # Heads may differ in alpha alone, and without leading dimensions alpha has none.
        alpha = alpha if scores.dim() > 2 else alpha.reshape(())
        scores, _ = torch.broadcast_tensors(scores, alpha)
    if inputs.is_causal:  # then there is no other mask
        mask = scores.new_ones(scores.shape[-2:], dtype=torch.bool).tril()
    weights = entmax(scores, alpha) if mask is None else _masked_weights(scores, alpha, mask)
    if factors is not None:
        weights = weights * factors
    elif inputs.dropout_p > 0:
        weights = dropout(weights, inputs.dropout_p)
    return weights if inputs.value is None else (weights @ inputs.value).to(dtype)


def _scaled_scores(inputs: Inputs) -> Tensor:
    """Return scores ``(..., queries, keys)``, multiplied by the scale and not masked.

    Scaling the queries is cheaper than scaling the scores: they are fewer numbers, if there are
    more keys than numbers in a query. The last digits differ. A trace stands for the C++ code and
    the GPU kernels, which scale scores, and so rounds as they do; not for a number above 2, which
    GPUs have no kernels for.
    """
    keys = inputs.key.transpose(-1, -2)
    # A trace knows no values of tensors; learned alphas lie between 1 and 2.
    if torch.jit.is_tracing() and (isinstance(inputs.alpha, Tensor) or inputs.alpha <= 2):
        return (inputs.query @ keys) * inputs.scale
    return (inputs.query * inputs.scale) @ keys


def _masked_weights(scores: Tensor, alpha: float | Tensor, mask: Tensor) -> Tensor:
    """Return entmax of masked scores, with zeros for a query without keys.

    Args:
        scores: ``(..., queries, keys)``, as the result.
        alpha: a number, or ``(heads, 1, 1)``; without heads, a tensor without dimensions.
        mask: broadcasts to the scores; booleans, or numbers.
    """
    is_boolean = mask.dtype == torch.bool
    scores = torch.where(mask, scores, -torch.inf) if is_boolean else scores + mask
    is_empty = (scores == -torch.inf).all(-1, keepdim=True)
    # Entmax refuses a row of -inf: zeros stand in for its scores.
    return torch.where(is_empty, 0.0, entmax(torch.where(is_empty, 0.0, scores), alpha))


def gradients_of_composed(
    inputs: Inputs, factors: Tensor | None, gradient: Tensor, wanted: Sequence[bool]
) -> list[Tensor | None]:
    """Return the gradients of `composed` in each of the inputs, None where they are not wanted.

    While autograd records gradients of gradients, they are differentiable again.

    Args:
        inputs: the arguments of `composed`.
        factors: the same.
        gradient: in the output of `composed`, in its shape.
        wanted: whether a gradient is wanted, for each field of the inputs.

    Returns:
        For each field, its gradient in its shape, or None.
    """
    with_graph = torch.is_grad_enabled()
    fields: list[Any] = [*inputs]
    with torch.enable_grad():
        # Aliases, since one tensor may be several of the inputs, or another one's function: the
        # gradient in an alias has its part alone.
        aliases = [
            field.view_as(field) if wants else field
            for field, wants in zip(fields, wanted, strict=True)
        ]
        output = composed(Inputs(*aliases), factors)
        leaves = [alias for alias, wants in zip(aliases, wanted, strict=True) if wants]
        in_leaves = iter(torch.autograd.grad(output, leaves, gradient, create_graph=with_graph))
    return [next(in_leaves) if wants else None for wants in wanted]
