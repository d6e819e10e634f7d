"""Attention and its gradients by Triton kernels, which never hold all scores in memory.

`forward` starts the kernel of triton_attention_forward.py, `backward` the two kernels of
triton_attention_gradients.py. Half types are multiplied as they are, with sums in float32.
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

_WARPS = 4


def forward(inputs: Inputs, keep: bool) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """Return attention ``(..., queries, value size)``, and what :func:`backward` needs.

    Args:
        inputs: see `Inputs`; with values.
        keep: ignored. What :func:`backward` needs is small, and always returned.

    Returns:
        The attention; and maxima, thresholds and sums of the queries, ``(3, outer x heads,
        queries)``, with the seed of dropout, ``(1,)``.
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
    """Return the gradients in query, key, value, alpha and mask; None where they are not wanted.

    The gradient in the mask is always None: `attention_backends` leaves masks that need one to
    PyTorch's operations.

    Args:
        inputs: the inputs of :func:`forward`.
        kept: the second result of :func:`forward`.
        gradient: gradient in the first result of :func:`forward`.
        wanted: for each field of `Inputs`, whether its gradient is wanted.
    """
    layout = HeadLayout(inputs)
    gradients, alpha_gradient = _run_gradient_kernels(inputs, layout, kept, gradient, wanted)
    in_alpha = None
    if isinstance(inputs.alpha, Tensor) and alpha_gradient is not None:
        in_alpha = layout.sum_by_head(alpha_gradient).view(inputs.alpha.shape)
        in_alpha = in_alpha.to(inputs.alpha.dtype)
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
        in_alpha,
        None,  # of the mask
    )


def dropout_factors(inputs: Inputs, kept: Sequence[Tensor]) -> Tensor:
    """Refuse to return the factors of dropout: the kernels draw them, but never write them.

    Raises:
        RuntimeError: always; it is for the user, who wants second derivatives.
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
    """Return the gradients in the operands, and the gradient in alpha for each query.

    If neither the gradient in the keys nor that in the values is wanted, both are left unwritten.

    Args:
        inputs: see :func:`backward`.
        layout: layout of the inputs.
        kept: statistics of the queries, and the seed.
        gradient: gradient in the output.
        wanted: see :func:`backward`.

    Returns:
        The gradients in query, key and value; and that in alpha, ``(outer x heads, queries)``, or
        None if it is not wanted.
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
            of_alpha=wants_alpha,
        )
        if wants_key or wants_value:
            triton_attention_gradients.gradient_of_keys[key_grid](
                **arguments, key_grad=gradients.key, value_grad=gradients.value
            )
    return gradients, alpha_gradient
