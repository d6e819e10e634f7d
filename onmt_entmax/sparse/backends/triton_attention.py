"""Attention by the kernel of triton_attention_forward.py, and its gradients.

The two kernels of triton_attention_gradients.py compute the latter. None has the scores in memory.
Half types are multiplied as they are, with sums in float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor
from triton.runtime import driver

from onmt_entmax.sparse.backends import triton_attention_forward, triton_attention_gradients
from onmt_entmax.sparse.backends.triton_alphas import alpha_of, kernel_alphas
from onmt_entmax.sparse.backends.triton_launch import (
    blocks,
    form_of,
    on_device_of,
    power_of_two,
)
from onmt_entmax.sparse.inputs import Inputs, Leading

# Up to so many keys are solved in one block, if none of their vectors has more bytes than these and
# shared memory has room for them.
_ONE_BLOCK_KEYS = 128
_ONE_BLOCK_BYTES = 256
# The smallest side of a product, `tl.dot`.
_LEAST_SIDE = 16
_WARPS = 4


def forward(inputs: Inputs, keep: bool) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """Return attention ``(..., queries, value size)``, and what :func:`backward` needs.

    That is maxima, thresholds and sums of the queries, ``(3, outer x heads, queries)``, and the
    seed of dropout, ``(1,)``.

    Args:
        inputs: see `Inputs`; with values.
        keep: without effect. Other backends return nothing for `backward` if it is false.
    """
    assert inputs.value is not None
    query, leading, block = inputs.query, Leading(inputs), _block(inputs)
    value_size = inputs.value.shape[-1]
    output = query.new_empty(leading.outer, leading.heads, leading.queries, value_size)
    statistics = torch.empty(
        3, leading.count, leading.queries, dtype=torch.float32, device=query.device
    )
    unread = statistics  # a kernel takes a tensor in this place, which it does not touch
    seed = unread
    if inputs.dropout_p > 0:
        seed = torch.randint(1 << 62, (1,), device=query.device)
    shared = _shared_arguments(inputs, leading, seed)
    width = max(power_of_two(leading.keys), _LEAST_SIDE)
    single = _fits_one_block(inputs, leading.keys, width, shared["precision"])
    grid = (blocks(leading.queries, block) * leading.count,)
    with on_device_of(query):
        triton_attention_forward.attend[grid](
            **shared,
            out=output,
            statistics=statistics,
            single=single,
            height=block,
            width=width if single else block,
            num_warps=_WARPS,
        )
    return leading.shaped(output), (statistics, seed)


def backward(
    inputs: Inputs, kept: Sequence[Tensor], gradient: Tensor, wanted: Sequence[bool]
) -> tuple[Tensor | None, ...]:
    """Return the gradients in query, key, value, alpha and mask; None where they are not wanted.

    That of the mask is always None: `sparse.attention` leaves masks with gradients to PyTorch's
    operations.

    Args:
        inputs: those of :func:`forward`.
        kept: its second result.
        gradient: in its first result.
        wanted: for each of the five whether it is.
    """
    assert inputs.value is not None
    leading, (statistics, seed) = Leading(inputs), kept
    wants_query, wants_key, wants_value, wants_alpha = wanted[:4]
    means = torch.empty_like(statistics[0])

    def empty_like(vectors: Tensor) -> Tensor:
        """Return memory for gradients ``(outer, heads, rows, size)``."""
        return inputs.query.new_empty(leading.outer, leading.heads, *vectors.shape[-2:])

    query_grad, key_grad, value_grad = map(empty_like, (inputs.query, inputs.key, inputs.value))
    unread = means
    alpha_grad = torch.empty_like(means) if wants_alpha else unread
    block = _block(inputs)
    shared = _shared_arguments(inputs, leading, seed)
    shared.update(
        upstream=leading.of(gradient).contiguous(),
        statistics=statistics,
        means=means,
        height=block,
        width=block,
        num_warps=_WARPS,
    )
    of_queries = (blocks(leading.queries, block) * leading.count,)
    of_keys = (blocks(leading.keys, block) * leading.count,)
    with on_device_of(inputs.query):
        # Always: the other kernel reads the means.
        triton_attention_gradients.gradient_of_queries[of_queries](
            **shared, query_grad=query_grad, alpha_grad=alpha_grad, of_alpha=wants_alpha
        )
        if wants_key or wants_value:
            triton_attention_gradients.gradient_of_keys[of_keys](
                **shared, key_grad=key_grad, value_grad=value_grad
            )
    in_query, in_key, in_value = (
        leading.shaped(grad).sum_to_size(vectors.shape) if wants else None
        for grad, vectors, wants in (
            (query_grad, inputs.query, wants_query),
            (key_grad, inputs.key, wants_key),
            (value_grad, inputs.value, wants_value),
        )
    )
    in_alpha = None
    if isinstance(inputs.alpha, Tensor) and wants_alpha:
        in_alpha = leading.in_alpha(alpha_grad, inputs.alpha)
    return in_query, in_key, in_value, in_alpha, None


def _fits_one_block(inputs: Inputs, keys: int, width: int, precision: str) -> bool:
    """Return whether one block of ``width`` keys has them all, and fits into shared memory."""
    if keys > _ONE_BLOCK_KEYS or _longest_vector(inputs) > _ONE_BLOCK_BYTES:
        return False
    assert inputs.value is not None
    wide = max(_wide(inputs.query), _wide(inputs.value))
    needed = bytes_of_one_block(width, wide, precision, inputs.query.itemsize)
    return needed <= _shared_memory(inputs.query.device)


def bytes_of_one_block(width: int, wide: int, precision: str, itemsize: int) -> int:
    """Return the shared memory that all keys and values need in one block, at most.

    Args:
        width: keys of the block.
        wide: columns of the wider of both tiles.
        precision: of products.
        itemsize: bytes of a number.
    """
    tiles = 2  # of keys and of values
    # Three products in TF32 take each number in two parts.
    parts = 2 if precision == "tf32x3" else 1
    return tiles * parts * width * wide * itemsize


def _wide(vectors: Tensor) -> int:
    """Return the columns of a tile of vectors."""
    return max(power_of_two(vectors.shape[-1]), _LEAST_SIDE)


@cache
def _shared_memory(device: torch.device) -> int:
    """Return the bytes of shared memory that one program may use: 99 KiB on an RTX 4090."""
    if device.type == "cpu":  # in the interpreter
        return 1 << 30
    return int(driver.active.utils.get_device_properties(device.index)["max_shared_mem"])


def _longest_vector(inputs: Inputs) -> int:
    """Return the bytes of the longest vectors."""
    assert inputs.value is not None
    return max(inputs.query.shape[-1], inputs.value.shape[-1]) * inputs.query.itemsize


def _block(inputs: Inputs) -> int:
    """Return the queries and keys of a block, fewer where vectors have many bytes.

    So the tiles of a program have at most 8 KiB each, up to vectors of 512 bytes.
    """
    size = _longest_vector(inputs)
    if size <= 128:
        return 64
    if size <= 256:
        return 32
    return 16


def _shared_arguments(inputs: Inputs, leading: Leading, seed: Tensor) -> dict[str, Any]:
    """Return the arguments that all kernels take, by name; see triton_attention_tiles.py."""
    assert inputs.value is not None
    query = _adjacent(leading.of(inputs.query))
    key = _adjacent(leading.of(inputs.key))
    value = _adjacent(leading.of(inputs.value))
    query_outer, query_head, query_row, _ = query.stride()
    key_outer, key_head, key_row, _ = key.stride()
    value_outer, value_head, value_row, _ = value.stride()
    mask = _mask_argument(inputs, leading)
    mask_outer, mask_head, mask_row, mask_column = mask.strides
    alphas: Tensor | int
    if isinstance(inputs.alpha, Tensor):
        alphas = kernel_alphas(inputs.alpha).contiguous()
    else:
        alphas = alpha_of(inputs.alpha, query.shape).values
    # Three products in TF32 are as exact as one in float32, which no tensor core has.
    exact = query.dtype == torch.float32 and not _may_round_to_tf32()
    form = form_of(inputs.alpha, torch.float32)
    return {
        "query": query,
        "key": key,
        "value": value,
        "mask": mask.tensor,
        "alpha": alphas,
        "seed": seed,
        "query_outer_stride": query_outer,
        "query_head_stride": query_head,
        "query_row_stride": query_row,
        "key_outer_stride": key_outer,
        "key_head_stride": key_head,
        "key_row_stride": key_row,
        "value_outer_stride": value_outer,
        "value_head_stride": value_head,
        "value_row_stride": value_row,
        "mask_outer_stride": mask_outer,
        "mask_head_stride": mask_head,
        "mask_row_stride": mask_row,
        "mask_column_stride": mask_column,
        "heads": leading.heads,
        "total_heads": leading.count,
        "query_count": leading.queries,
        "key_count": leading.keys,
        "size": query.shape[-1],
        "value_size": value.shape[-1],
        "scale": float(inputs.scale),
        "dropped": float(inputs.dropout_p),
        # What kernels are compiled for:
        "each_head": isinstance(alphas, Tensor),
        "log_form": form.log_form,
        "power": form.power,
        "masking": mask.kind,
        "has_dropout": inputs.dropout_p > 0,
        "precision": "tf32x3" if exact else "tf32",
        "wide": _wide(query),
        "value_wide": _wide(value),
    }


class _Mask(NamedTuple):
    """A mask as the kernels take it.

    Attributes:
        kind: "none", "causal", "booleans" or "numbers".
        tensor: ``(outer, heads, queries, keys)``; any tensor, which is not read, if there is none.
        strides: of the tensor.
    """

    kind: str
    tensor: Tensor
    strides: tuple[int, ...]


def _mask_argument(inputs: Inputs, leading: Leading) -> _Mask:
    """Return the mask of the inputs."""
    if inputs.mask is None:
        return _Mask("causal" if inputs.is_causal else "none", inputs.query, (0, 0, 0, 0))
    tensor = leading.of_mask(inputs.mask)
    if tensor.dtype == torch.bool:
        return _Mask("booleans", tensor.view(torch.uint8), tensor.stride())
    return _Mask("numbers", tensor, tensor.stride())


def _may_round_to_tf32() -> bool:
    """Return whether PyTorch is allowed to round factors in float32 to TF32."""
    matmul = torch.backends.cuda.matmul
    # Since 2.9; where this is set, PyTorch refuses to read the older setting.
    precision = getattr(matmul, "fp32_precision", None)
    return bool(matmul.allow_tf32) if precision is None else precision == "tf32"


def _adjacent(tensor: Tensor) -> Tensor:
    """Return a tensor with a stride of 1 in its last dimension."""
    return tensor if tensor.stride(-1) == 1 else tensor.contiguous()
