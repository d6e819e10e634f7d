"""Fused attention for GPUs: forward one kernel, backward two, and never the scores in memory.

Half types are multiplied as they are, with sums in float32. With one alpha a head, heads above 2
have kernels of their own, which end at once where there are none; nothing waits for the GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from onmt_entmax.sparse.arguments import has_memory
from onmt_entmax.sparse.backends import triton_attention_kernels as kernels
from onmt_entmax.sparse.backends.attention_inputs import Inputs, Leading
from onmt_entmax.sparse.backends.triton import alpha_of, blocks, form_of, or_none, power_of_two

# Sizes whose blocks have room in the shared memory of every GPU since Ampere.
_LARGEST_SIZE = 128
# Keys of a block, and queries; fewer where a vector has more bytes than these.
_BLOCK = 64
_SHORT_VECTOR, _LONG_VECTOR = 128, 256
# All keys are one block up to here, but for long vectors.
_SINGLE = 128
_LEAST = 16


def covers(inputs: Inputs) -> bool:
    """Return whether the kernels take the inputs: float32 or half types, no gradient of a mask."""
    query, key, value, mask = inputs.query, inputs.key, inputs.value, inputs.mask
    return (
        value is not None
        and query.dtype in (torch.float32, torch.float16, torch.bfloat16)
        and max(query.shape[-1], value.shape[-1]) <= _LARGEST_SIZE
        and query.shape[-2] * key.shape[-2] < 1 << 31
        and not (mask is not None and mask.requires_grad)
        and all(
            given.numel() > 0 and has_memory(given) for given in inputs if isinstance(given, Tensor)
        )
    )


class Kept(NamedTuple):
    """What the gradient needs.

    Attributes:
        statistics: maxima, thresholds and sums of the queries, ``(3, heads of all, queries)``.
        seed: of dropout, ``(1,)``.
    """

    statistics: Tensor
    seed: Tensor


def forward(inputs: Inputs) -> tuple[Tensor, Kept] | None:
    """Return attention ``(..., queries, value size)``; None if the kernel fails."""
    return _forward(inputs.query, inputs)


@or_none
def _forward(query: Tensor, inputs: Inputs) -> tuple[Tensor, Kept] | None:
    assert inputs.value is not None
    leading = Leading(inputs)
    work = torch.float64 if _may_exceed_two(inputs) else torch.float32
    value_size = inputs.value.shape[-1]
    output = query.new_empty(leading.outer, leading.heads, leading.queries, value_size)
    statistics = query.new_empty(3, leading.count, leading.queries, dtype=work)
    seed = statistics
    if inputs.dropout_p > 0:
        seed = torch.randint(1 << 62, (1,), device=query.device)
    kept = Kept(statistics, seed)
    tensors, numbers, constants = _arguments(inputs, leading, seed)
    single = leading.keys <= _SINGLE and _bytes(inputs) <= _LONG_VECTOR
    block = _block(inputs)
    width = max(power_of_two(leading.keys), _LEAST) if single else block
    grid = (blocks(leading.queries, block) * leading.count,)
    for launch in _launches(inputs):
        kernels.attend[grid](
            *tensors, output, statistics, *numbers, **constants, **launch, single=single,
            height=block, width=width, num_warps=4,
        )  # fmt: skip
    return leading.shaped(output), kept


def backward(
    inputs: Inputs, kept: Kept, gradient: Tensor, wanted: Sequence[bool]
) -> tuple[Tensor | None, ...] | None:
    """Return the gradients in query, key, value, alpha and mask, the last None.

    Args:
        inputs: those of :func:`forward`.
        kept: its second result.
        gradient: in its first result.
        wanted: for each of the five whether it is.

    Returns:
        Gradients, None for those not wanted; or None if a kernel fails.
    """
    return _backward(inputs.query, inputs, kept, gradient, wanted)


@or_none
def _backward(
    query: Tensor, inputs: Inputs, kept: Kept, gradient: Tensor, wanted: Sequence[bool]
) -> tuple[Tensor | None, ...] | None:
    value = inputs.value
    assert value is not None
    leading = Leading(inputs)
    tensors, numbers, constants = _arguments(inputs, leading, kept.seed)
    gradient = leading.of(gradient).contiguous()
    means = torch.empty_like(kept.statistics[0])
    shared = (inputs.query, inputs.key, value)
    query_grad, key_grad, value_grad = (
        query.new_empty(leading.outer, leading.heads, *given.shape[-2:]) for given in shared
    )
    alpha_grad = torch.empty_like(means) if wanted[3] else means
    block = _block(inputs)
    known = (gradient, kept.statistics, means)
    sizes = {"height": block, "width": block, "num_warps": 4}
    by_query = (blocks(leading.queries, block) * leading.count,)
    by_key = (blocks(leading.keys, block) * leading.count,)
    for launch in _launches(inputs):
        kernels.gradient_of_queries[by_query](
            *tensors, *known, query_grad, alpha_grad, *numbers, **constants, **launch,
            of_alpha=wanted[3], **sizes,
        )  # fmt: skip
    if wanted[1] or wanted[2]:
        for launch in _launches(inputs):
            kernels.gradient_of_keys[by_key](
                *tensors, *known, key_grad, value_grad, *numbers, **constants, **launch, **sizes
            )  # fmt: skip
    made = zip((query_grad, key_grad, value_grad), shared, wanted, strict=False)
    of_query, of_key, of_value = (
        leading.shaped(whole).sum_to_size(given.shape) if wants else None
        for whole, given, wants in made
    )
    of_alpha = None
    if isinstance(inputs.alpha, Tensor) and wanted[3]:
        of_alpha = leading.in_alpha(alpha_grad, inputs.alpha)
    return of_query, of_key, of_value, of_alpha, None


def _may_exceed_two(inputs: Inputs) -> bool:
    return isinstance(inputs.alpha, Tensor) or inputs.alpha > 2


def _bytes(inputs: Inputs) -> int:
    """Return the bytes of the longest vectors."""
    assert inputs.value is not None
    return max(inputs.query.shape[-1], inputs.value.shape[-1]) * inputs.query.itemsize


def _block(inputs: Inputs) -> int:
    """Return the queries and keys of a block."""
    size = _bytes(inputs)
    if size <= _SHORT_VECTOR and not _may_exceed_two(inputs):
        return _BLOCK
    return _BLOCK // 2 if size <= _LONG_VECTOR else _BLOCK // 4


def _launches(inputs: Inputs) -> list[dict[str, Any]]:
    """Return the constants of the launches of a kernel: one, or two with one alpha a head."""
    if isinstance(inputs.alpha, Tensor):
        form = form_of(inputs.alpha, torch.float32)
        flat = form._replace(work=torch.float32).constants
        return [{"part": "flat", **flat}, {"part": "steep", **form.constants}]
    return [{"part": "all", **form_of(inputs.alpha, torch.float32).constants}]


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
        alphas: Any = alpha.detach().contiguous()
    else:
        alphas = alpha_of(alpha, query.shape).given
    numbers = [
        *strides, *mask_strides, leading.heads, leading.count, leading.queries, leading.keys,
        query.shape[-1], value.shape[-1], float(scale), float(dropped),
    ]  # fmt: skip
    # Three products in TF32 are as exact as one in float32, which no tensor core has.
    exact = query.dtype == torch.float32 and not _may_round_to_tf32()
    constants = {
        "each_head": each,
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
