"""Attention and its gradients by Triton kernels, which never hold all scores in memory.

`forward` starts the kernel of triton_attention_forward.py, `backward` the two kernels of
triton_attention_gradients.py. Half types are multiplied as they are, and summed in float32.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from onmt_entmax.sparse.backends import triton_attention_forward, triton_attention_gradients
from onmt_entmax.sparse.backends.triton_attention_arguments import Operands, shared_arguments
from onmt_entmax.sparse.backends.triton_attention_blocks import (
    block_side,
    fits_one_block,
    tile_side,
)
from onmt_entmax.sparse.backends.triton_launch import blocks, on_device_of
from onmt_entmax.sparse.head_layout import HeadLayout
from onmt_entmax.sparse.inputs import Inputs

# Warps of a program, for blocks of every size.
_WARPS = 4


def forward(inputs: Inputs, keep: bool) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """Return attention ``(..., queries, value size)``, and what :func:`backward` needs.

    Args:
        inputs: the inputs, with values, none of them empty and no alpha above 2.
        keep: ignored. What :func:`backward` needs is small, and always returned.

    Returns:
        The attention; and for :func:`backward` the statistics of the queries, see
        triton_attention_statistics.py, and the seed of dropout, ``(1,)``.
    """
    layout = HeadLayout(inputs)
    operands = Operands.of(inputs, layout)
    query, _, value = operands
    output = query.new_empty(*query.shape[:-1], value.shape[-1])
    statistics = torch.empty(
        3, layout.total_heads, layout.queries, dtype=torch.float32, device=query.device
    )
    seed = statistics  # Without dropout the kernel reads no seed, and takes any tensor.
    if inputs.dropout_p > 0:
        seed = torch.randint(1 << 62, (1,), device=query.device)
    block = block_side(query, value)
    one_block = fits_one_block(query, value, operands.precision)
    grid = (blocks(layout.queries, block) * layout.total_heads,)
    with on_device_of(query):
        triton_attention_forward.attend[grid](
            **shared_arguments(inputs, layout, operands, seed),
            out=output,
            statistics=statistics,
            one_block=one_block,
            block_queries=block,
            block_keys=tile_side(layout.keys) if one_block else block,
            num_warps=_WARPS,
        )
    return layout.merge(output), (statistics, seed)


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
        Gradients in the shapes of the inputs; None where they are not wanted, and for the mask:
        `attention_backends` leaves masks that need a gradient to PyTorch's operations.
    """
    layout = HeadLayout(inputs)
    gradients, alpha_gradient = _run_gradient_kernels(inputs, layout, kept, gradient, wanted)
    grad_alpha = None
    if isinstance(inputs.alpha, Tensor) and alpha_gradient is not None:
        grad_alpha = layout.sum_by_head(alpha_gradient).view(inputs.alpha.shape)
        grad_alpha = grad_alpha.to(inputs.alpha.dtype)
    wants_query, wants_key, wants_value = wanted[:3]

    def in_shape_of(tensor: Tensor | None, grad: Tensor, wants: bool) -> Tensor | None:
        # An input that was broadcast gets the sum of the gradients of its copies.
        if tensor is None or not wants:
            return None
        return layout.merge(grad).sum_to_size(tensor.shape)

    return (
        in_shape_of(inputs.query, gradients.query, wants_query),
        in_shape_of(inputs.key, gradients.key, wants_key),
        in_shape_of(inputs.value, gradients.value, wants_value),
        grad_alpha,
        None,  # of the mask
    )


def dropout_factors(inputs: Inputs, kept: Sequence[Tensor]) -> Tensor:
    """Refuse to return the factors of dropout, since the kernels draw them but do not write them.

    Raises:
        RuntimeError: always, with a message for the user, who has asked for second derivatives.
    """
    raise RuntimeError(
        "attention with dropout has no second derivatives on a GPU; set dropout_p to 0"
    )


def _run_gradient_kernels(
    inputs: Inputs,
    layout: HeadLayout,
    kept: Sequence[Tensor],
    gradient: Tensor,
    wanted: Sequence[bool],
) -> tuple[Operands, Tensor | None]:
    """Return the gradients with respect to the operands and to alpha.

    If neither the gradient of the keys nor that of the values is wanted, both are left unwritten.

    Args:
        inputs: see :func:`backward`.
        layout: layout of the inputs.
        kept: statistics of the queries, and the seed.
        gradient: see :func:`backward`.
        wanted: see :func:`backward`.

    Returns:
        The gradients with respect to query, key and value; and the part of each query in the
        gradient with respect to alpha, ``(total heads, queries)``, or None if it is not wanted.
    """
    wants_key, wants_value, wants_alpha = wanted[1:4]
    statistics, seed = kept
    operands = Operands.of(inputs, layout)
    gradients = Operands(*(operands.query.new_empty(vectors.shape) for vectors in operands))
    # The mean m of each query, see triton_attention_gradients.py.
    means = torch.empty_like(statistics[0])
    alpha_gradient = torch.empty_like(means) if wants_alpha else None
    block = block_side(operands.query, operands.value)
    arguments = shared_arguments(inputs, layout, operands, seed)
    arguments.update(
        upstream=layout.split(gradient).contiguous(),
        statistics=statistics,
        means=means,
        block_queries=block,
        block_keys=block,
        num_warps=_WARPS,
    )
    query_grid = (blocks(layout.queries, block) * layout.total_heads,)
    key_grid = (blocks(layout.keys, block) * layout.total_heads,)
    with on_device_of(inputs.query):
        # Always: the other kernel reads the means.
        triton_attention_gradients.gradient_of_queries[query_grid](
            **arguments,
            query_grad=gradients.query,
            # The kernel takes any tensor here if it is not to write this gradient.
            alpha_grad=means if alpha_gradient is None else alpha_gradient,
            wants_alpha=wants_alpha,
        )
        if wants_key or wants_value:
            triton_attention_gradients.gradient_of_keys[key_grid](
                **arguments, key_grad=gradients.key, value_grad=gradients.value
            )
    return gradients, alpha_gradient
