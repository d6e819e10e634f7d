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
        inputs: the arguments.
        factors: of the weights, in the place of dropout.

    Returns:
        Attention in the type of the query, weights in the type they are computed in.
    """
    dtype = inputs.query.dtype
    inputs = inputs.in_type(working_type(inputs.query))
    alpha, mask = inputs.alpha, inputs.mask
    keys = inputs.key.transpose(-1, -2)
    if torch.jit.is_tracing() and (isinstance(alpha, Tensor) or alpha <= 2):
        # A trace replaces the C++ code, and rounds as this does.
        scores = (inputs.query @ keys) * inputs.scale
    else:
        scores = (inputs.query * inputs.scale) @ keys
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


def _masked_weights(scores: Tensor, alpha: float | Tensor, mask: Tensor) -> Tensor:
    """Return entmax of masked scores ``(..., queries, keys)``, zeros for a query without keys."""
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
