"""Attention and its gradients by the kernels of triton_attention_kernels.py.

It is one kernel forward and two backward, and never has the scores in memory. Half types are
multiplied as they are, with sums in float32.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor
from triton.runtime import driver

from onmt_entmax.sparse.backends import triton_attention_kernels as kernels
from onmt_entmax.sparse.backends.triton_launch import (
    alpha_of,
    blocks,
    form_of,
    kernel_alphas,
    on_device_of,
    power_of_two,
)
from onmt_entmax.sparse.inputs import Inputs, Leading

# So many keys are solved in one block, if their vectors have no more bytes than these and shared
# memory has room for them.
_ONE_BLOCK_KEYS = 128
_ONE_BLOCK_BYTES = 256
# The smallest side of a product, `tl.dot`.
_LEAST_SIDE = 16
_WARPS = 4


def forward(inputs: Inputs, keep: bool) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """Return attention ``(..., queries, value size)``, and what :func:`backward` needs.

    That is maxima, thresholds and sums of the queries, ``(3, outer x heads, queries)``, and the
    seed of dropout, ``(1,)``. It is kept always; ``keep`` is of other backends.
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
    tensors, numbers, constants = _arguments(inputs, leading, seed)
    width = max(power_of_two(leading.keys), _LEAST_SIDE)
    single = _fits_one_block(inputs, leading.keys, width, constants)
    with on_device_of(query):
        kernels.attend[(blocks(leading.queries, block) * leading.count,)](
            *tensors, output, statistics, *numbers, **constants, single=single,
            height=block, width=width if single else block, num_warps=_WARPS,
        )  # fmt: skip
    return leading.shaped(output), (statistics, seed)


def backward(
    inputs: Inputs, kept: Sequence[Tensor], gradient: Tensor, wanted: Sequence[bool]
) -> tuple[Tensor | None, ...]:
    """Return the gradients in query, key, value and alpha, where they are wanted, and None.

    None is for the mask: `sparse.attention` leaves masks with gradients to PyTorch's operations.
    """
    assert inputs.value is not None
    leading, (statistics, seed) = Leading(inputs), kept
    _, wants_key, wants_value, wants_alpha = wanted[:4]
    tensors, numbers, constants = _arguments(inputs, leading, seed)
    means = torch.empty_like(statistics[0])
    results_of_forward = (leading.of(gradient).contiguous(), statistics, means)
    shared = (inputs.query, inputs.key, inputs.value)
    grads = [
        inputs.query.new_empty(leading.outer, leading.heads, *tensor.shape[-2:])
        for tensor in shared
    ]
    unread = means
    alpha_grad = torch.empty_like(means) if wants_alpha else unread
    block = _block(inputs)
    sizes = {"height": block, "width": block, "num_warps": _WARPS}
    with on_device_of(inputs.query):
        kernels.gradient_of_queries[(blocks(leading.queries, block) * leading.count,)](
            *tensors, *results_of_forward, grads[0], alpha_grad, *numbers, **constants,
            of_alpha=wants_alpha, **sizes,
        )  # fmt: skip
        if wants_key or wants_value:
            kernels.gradient_of_keys[(blocks(leading.keys, block) * leading.count,)](
                *tensors, *results_of_forward, *grads[1:], *numbers, **constants, **sizes
            )  # fmt: skip
    in_query, in_key, in_value = (
        leading.shaped(grad).sum_to_size(tensor.shape) if wants else None
        for grad, tensor, wants in zip(grads, shared, wanted[:3], strict=True)
    )
    in_alpha = None
    if isinstance(inputs.alpha, Tensor) and wants_alpha:
        in_alpha = leading.in_alpha(alpha_grad, inputs.alpha)
    return in_query, in_key, in_value, in_alpha, None


def _fits_one_block(inputs: Inputs, keys: int, width: int, constants: Mapping[str, Any]) -> bool:
    """Return whether one block of ``width`` keys has them all, and fits into shared memory."""
    if keys > _ONE_BLOCK_KEYS or _longest_vector(inputs) > _ONE_BLOCK_BYTES:
        return False
    needed = bytes_of_one_block(width, constants, inputs.query.itemsize)
    return needed <= _shared_memory(inputs.query.device)


def bytes_of_one_block(width: int, constants: Mapping[str, Any], itemsize: int) -> int:
    """Return the shared memory that all keys and values need in one block, at most."""
    # Three products in TF32 take each tensor in two parts.
    parts = 4 if constants["precision"] == "tf32x3" else 2
    return parts * width * max(constants["wide"], constants["value_wide"]) * itemsize


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
    """Return the queries and keys of a block, fewer where vectors have many bytes."""
    size = _longest_vector(inputs)
    if size <= 128:
        return 64
    if size <= 256:
        return 32
    return 16


def _arguments(
    inputs: Inputs, leading: Leading, seed: Tensor
) -> tuple[list[Any], list[Any], dict[str, Any]]:
    """Return tensors, numbers and constants that all kernels take."""
    query, value = inputs.query, inputs.value
    assert value is not None
    vectors = [_adjacent(leading.of(tensor)) for tensor in (query, inputs.key, value)]
    strides = [stride for tensor in vectors for stride in tensor.stride()[:3]]
    mask = _mask_argument(inputs, leading)
    alphas: Tensor | int
    if isinstance(inputs.alpha, Tensor):
        alphas = kernel_alphas(inputs.alpha).contiguous()
    else:
        alphas = alpha_of(inputs.alpha, query.shape).given
    numbers = [
        *strides, *mask.strides, leading.heads, leading.count, leading.queries, leading.keys,
        query.shape[-1], value.shape[-1], float(inputs.scale), float(inputs.dropout_p),
    ]  # fmt: skip
    # Three products in TF32 are as exact as one in float32, which no tensor core has.
    exact = query.dtype == torch.float32 and not _may_round_to_tf32()
    form = form_of(inputs.alpha, torch.float32)
    constants = {
        "each_head": isinstance(alphas, Tensor),
        "log_form": form.log_form,
        "power": form.power,
        "masking": mask.kind,
        "has_dropout": inputs.dropout_p > 0,
        "precision": "tf32x3" if exact else "tf32",
        "wide": max(power_of_two(query.shape[-1]), _LEAST_SIDE),
        "value_wide": max(power_of_two(value.shape[-1]), _LEAST_SIDE),
    }
    return [*vectors, mask.tensor, alphas, seed], numbers, constants


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
