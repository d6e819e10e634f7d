"""Fused attention for GPUs: forward one kernel, backward two, and never the scores in memory.

Half types are multiplied as they are, with sums in float32; alpha is from 1 to 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from onmt_entmax.sparse.backends import triton_attention_kernels as kernels
from onmt_entmax.sparse.backends.attention_inputs import Inputs, Leading
from onmt_entmax.sparse.backends.triton import (
    alpha_of,
    blocks,
    device_of,
    form_of,
    kernel_alphas,
    power_of_two,
)

# All keys are one block up to here, but for vectors of more bytes.
_SINGLE, _LONG_VECTOR = 128, 256
_LEAST = 16


def forward(inputs: Inputs, keep: bool) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """Return attention ``(..., queries, value size)``, and what :func:`backward` needs.

    That is maxima, thresholds and sums of the queries, ``(3, heads of all, queries)``, and the seed
    of dropout, ``(1,)``.
    """
    assert inputs.value is not None
    query, leading, block = inputs.query, Leading(inputs), _block(inputs)
    value_size = inputs.value.shape[-1]
    output = query.new_empty(leading.outer, leading.heads, leading.queries, value_size)
    statistics = torch.empty(
        3, leading.count, leading.queries, dtype=torch.float32, device=query.device
    )
    seed = statistics
    if inputs.dropout_p > 0:
        seed = torch.randint(1 << 62, (1,), device=query.device)
    tensors, numbers, constants = _arguments(inputs, leading, seed)
    single = leading.keys <= _SINGLE and _bytes(inputs) <= _LONG_VECTOR
    with device_of(query):
        kernels.attend[(blocks(leading.queries, block) * leading.count,)](
            *tensors, output, statistics, *numbers, **constants, single=single,
            height=block, width=max(power_of_two(leading.keys), _LEAST) if single else block,
            num_warps=4,
        )  # fmt: skip
    return leading.shaped(output), (statistics, seed)


def backward(
    inputs: Inputs, kept: Sequence[Tensor], gradient: Tensor, wanted: Sequence[bool]
) -> tuple[Tensor | None, ...]:
    """Return the gradients in query, key, value, alpha and mask; see `cpu_attention.backward`."""
    assert inputs.value is not None
    leading, (statistics, seed) = Leading(inputs), kept
    tensors, numbers, constants = _arguments(inputs, leading, seed)
    means = torch.empty_like(statistics[0])
    known = (leading.of(gradient).contiguous(), statistics, means)
    shared = (inputs.query, inputs.key, inputs.value)
    grads = [
        inputs.query.new_empty(leading.outer, leading.heads, *given.shape[-2:]) for given in shared
    ]
    alpha_grad = torch.empty_like(means) if wanted[3] else means
    block = _block(inputs)
    sizes = {"height": block, "width": block, "num_warps": 4}
    with device_of(inputs.query):
        kernels.gradient_of_queries[(blocks(leading.queries, block) * leading.count,)](
            *tensors, *known, grads[0], alpha_grad, *numbers, **constants, of_alpha=wanted[3],
            **sizes,
        )  # fmt: skip
        if wanted[1] or wanted[2]:
            kernels.gradient_of_keys[(blocks(leading.keys, block) * leading.count,)](
                *tensors, *known, *grads[1:], *numbers, **constants, **sizes
            )  # fmt: skip
    of_query, of_key, of_value = (
        leading.shaped(whole).sum_to_size(given.shape) if wants else None
        for whole, given, wants in zip(grads, shared, wanted, strict=False)
    )
    in_alpha = None
    if isinstance(inputs.alpha, Tensor) and wanted[3]:
        in_alpha = leading.in_alpha(alpha_grad, inputs.alpha)
    return of_query, of_key, of_value, in_alpha, None


def _bytes(inputs: Inputs) -> int:
    """Return the bytes of the longest vectors."""
    assert inputs.value is not None
    return max(inputs.query.shape[-1], inputs.value.shape[-1]) * inputs.query.itemsize


def _block(inputs: Inputs) -> int:
    """Return the queries and keys of a block, fewer where vectors have many bytes."""
    size = _bytes(inputs)
    return 64 if size <= 128 else 32 if size <= _LONG_VECTOR else 16


def _arguments(
    inputs: Inputs, leading: Leading, seed: Tensor
) -> tuple[list[Any], list[Any], dict[str, Any]]:
    """Return tensors, numbers and constants that all kernels take."""
    query, key, value, alpha, mask, is_causal, scale, dropped = inputs
    assert value is not None
    given = [_adjacent(leading.of(tensor)) for tensor in (query, key, value)]
    strides = [stride for tensor in given for stride in tensor.stride()[:3]]
    masking, of_mask = "causal" if is_causal else "none", query
    mask_strides: tuple[int, ...] = (0, 0, 0, 0)
    if mask is not None:
        masking = "booleans" if mask.dtype == torch.bool else "numbers"
        of_mask = leading.of_mask(mask)
        mask_strides = of_mask.stride()
        of_mask = of_mask.view(torch.uint8) if masking == "booleans" else of_mask
    each = isinstance(alpha, Tensor)
    if isinstance(alpha, Tensor):
        alphas: Any = kernel_alphas(alpha).contiguous()
    else:
        alphas = alpha_of(alpha, query.shape).given
    numbers = [
        *strides, *mask_strides, leading.heads, leading.count, leading.queries, leading.keys,
        query.shape[-1], value.shape[-1], float(scale), float(dropped),
    ]  # fmt: skip
    # Three products in TF32 are as exact as one in float32, which no tensor core has.
    exact = query.dtype == torch.float32 and not _may_round_to_tf32()
    form = form_of(alpha, torch.float32)
    constants = {
        "each_head": each,
        "log_form": form.log_form,
        "power": form.power,
        "masking": masking,
        "has_dropout": dropped > 0,
        "precision": "tf32x3" if exact else "tf32",
        "wide": max(power_of_two(query.shape[-1]), _LEAST),
        "value_wide": max(power_of_two(value.shape[-1]), _LEAST),
    }
    return [*given, of_mask, alphas, seed], numbers, constants


def _may_round_to_tf32() -> bool:
    """Return whether PyTorch is allowed to round factors in float32 to TF32."""
    matmul = torch.backends.cuda.matmul
    # Since 2.9; where this is set, PyTorch refuses to read the older setting.
    precision = getattr(matmul, "fp32_precision", None)
    return bool(matmul.allow_tf32) if precision is None else precision == "tf32"


def _adjacent(tensor: Tensor) -> Tensor:
    """Return a tensor with a stride of 1 in its last dimension."""
    return tensor if tensor.stride(-1) == 1 else tensor.contiguous()
