"""The Triton backend: entmax and attention on a GPU, for alpha from 1 to 2.

triton_kernels.py has the kernels of rows. Attention is one kernel forward and two backward, of
triton_attention_kernels.py, and never has the scores in memory. Half types are multiplied as they
are, with sums in float32.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any, NamedTuple

import torch
import triton.language as tl
from torch import Tensor
from triton.runtime import driver

from onmt_entmax.sparse.arguments import Inputs, Leading, working_type
from onmt_entmax.sparse.backends import triton_attention_kernels as attention_kernels
from onmt_entmax.sparse.backends import triton_kernels
from onmt_entmax.sparse.reference import scaled as scaled

# Bytes of a row that stays in registers, and of a tile of a longer one, in the type computed in;
# candidates that a list has room for.
_REGISTERS = 1 << 15
_TILE = 1 << 14
_ROOM = 1024
# All keys are one block up to here, but for vectors of more bytes.
_SINGLE, _LONG_VECTOR = 128, 256
_LEAST = 16


def device_of(scores: Tensor) -> AbstractContextManager[object]:
    """Return a context in which kernels start on the scores' device."""
    if not scores.is_cuda or scores.device.index == torch.cuda.current_device():
        return nullcontext()
    return torch.cuda.device(scores.device)


class _Form(NamedTuple):
    """The constants that kernels are compiled for.

    Attributes:
        log_form: whether the log form is solved, else the power form; see triton_kernels.py.
        power: the exponent ``1 / beta`` if it is a whole number, -1 for softmax, else 0.
        work: the type to compute in.
    """

    log_form: bool
    power: int
    work: torch.dtype

    @property
    def constants(self) -> dict[str, object]:
        """The constants as arguments of a kernel."""
        work = tl.float64 if self.work == torch.float64 else tl.float32
        return {"log_form": self.log_form, "power": self.power, "work": work}


def form_of(alpha: float | Tensor, dtype: torch.dtype) -> _Form:
    """Return the form in which scores of a type are solved."""
    work = torch.float64 if dtype == torch.float64 else torch.float32
    return _Form(True, 0, work) if isinstance(alpha, Tensor) else _form_of_number(alpha, work)


# What a small input waits for is Python, which starts the kernels; so constants are kept.
@cache
def _form_of_number(alpha: float, work: torch.dtype) -> _Form:
    if alpha == 1:
        return _Form(False, -1, work)
    # Nearer to 1 the power form magnifies rounding.
    if alpha < 1.1:
        return _Form(True, 0, work)
    whole = round(1 / (alpha - 1))
    return _Form(False, whole if math.isclose(whole * (alpha - 1), 1, rel_tol=4e-15) else 0, work)


class _Alpha(NamedTuple):
    """Alpha as kernels take it: row ``r`` has ``given[(r // inner) % different]``.

    Attributes:
        given: a tensor of alphas; or the bits of ``alpha - 1`` in float64, for all rows.
        inner: rows one after the other with the same alpha.
        different: alphas, one after the other in memory.
        each_row: whether there is a tensor.
    """

    given: Tensor | int
    inner: int
    different: int
    each_row: bool


def kernel_alphas(alpha: Tensor) -> Tensor:
    """Return alphas for kernels; nan for those above 2, which a CUDA graph lets pass unread."""
    alpha = alpha.detach()
    return torch.where(alpha <= 2, alpha, torch.nan)


def alpha_of(alpha: float | Tensor, shape: torch.Size) -> _Alpha:
    """Return alpha for the rows of scores of a shape, as a rule without a copy."""
    if not isinstance(alpha, Tensor):
        # A number of Python would arrive in float32, a tensor would have to be filled.
        return _alpha_of_number(alpha)
    alpha = kernel_alphas(alpha).expand(*shape[:-1], 1)
    inner, count, dimensions = 1, 1, list(zip(alpha.shape, alpha.stride(), strict=True))
    # From the last: dimensions that repeat one alpha, some that hold a tensor, repetitions of it.
    while dimensions and (dimensions[-1][1] == 0 or dimensions[-1][0] == 1):
        inner *= dimensions.pop()[0]
    while dimensions and (dimensions[-1][1] == count or dimensions[-1][0] == 1):
        count *= dimensions.pop()[0]
    if all(stride == 0 or size == 1 for size, stride in dimensions):
        return _Alpha(alpha, inner, count, True)
    return _Alpha(alpha.reshape(-1), 1, alpha.numel(), True)


@cache
def _alpha_of_number(alpha: float) -> _Alpha:
    return _Alpha(struct.unpack("<q", struct.pack("<d", alpha - 1))[0], 1, 1, False)


def blocks(size: int, block: int) -> int:
    """Return how many blocks cover a size; Triton's own function takes 4 us."""
    return -(-size // block)


def power_of_two(size: int) -> int:
    """Return the smallest power of two that is at least a size of 1 or more."""
    return 1 << (size - 1).bit_length()


@cache
def short_rows(n: int, work: torch.dtype) -> dict[str, int] | None:
    """Return height, width and warps of a program of short rows, or None for long rows."""
    width = max(power_of_two(n), 16)
    if width * work.itemsize > _REGISTERS:
        return None
    height = max(512 // width, 1)  # of several rows, 512 scores
    return {"height": height, "width": width, "num_warps": _warps(height * width * work.itemsize)}


def _warps(size: int) -> int:
    """Return the warps for a tile of so many bytes: about 16 float32 numbers a thread."""
    return min(max(size // (32 * 16 * 4), 1), 16)


def _solve(
    scores: Tensor, alpha: float | Tensor, result: str, out: Tensor, conjugates: Sequence[Tensor]
) -> None:
    """Solve contiguous rows ``(..., n)``; see `triton_kernels.solve_short`."""
    form, alphas, n = form_of(alpha, scores.dtype), alpha_of(alpha, scores.shape), scores.shape[-1]
    rows, short = scores.numel() // n, short_rows(n, form.work)
    given = (scores, out, *(conjugates or (out, out)), *alphas[:3])
    constants = {
        "each_row": alphas.each_row,
        "result": result,
        "conjugate": bool(conjugates),
        **form.constants,
    }
    with device_of(scores):
        if short is not None:
            grid = (blocks(rows, short["height"]),)
            triton_kernels.solve_short[grid](*given, rows, n, **constants, **short)
            return
        columns = torch.empty(rows, _ROOM, dtype=torch.int32, device=scores.device)
        triton_kernels.solve_long[(rows,)](
            *given, columns, n, **constants,
            width=_TILE // form.work.itemsize, room=_ROOM, num_warps=_warps(_TILE),
        )  # fmt: skip


def mapping(scores: Tensor, alpha: float | Tensor, logs: bool) -> Tensor:
    """Return probabilities ``(..., n)`` or their logarithms; see `reference.mapping`."""
    scores = scores.contiguous()
    out = torch.empty_like(scores, dtype=working_type(scores))
    _solve(scores, alpha, "logs" if logs else "probabilities", out, ())
    return out


def solve(scores: Tensor, alpha: float | Tensor, out: Tensor) -> tuple[Tensor, Tensor]:
    """Write probabilities of rows, return shifted conjugates and maxima; see `backends.solve`."""
    shifted, maxima = scores.new_empty(len(scores)), scores.new_empty(len(scores))
    _solve(scores, alpha, "probabilities", out, (shifted, maxima))
    return shifted, maxima


def conjugate(scores: Tensor, alpha: float | Tensor) -> tuple[Tensor, Tensor, tuple[Tensor]]:
    """Return shifted conjugates and maxima, and for :func:`scaled` the probabilities."""
    p = torch.empty_like(scores)
    return *solve(scores, alpha, p), (p,)


def gradients(
    probabilities: Tensor, alpha: float | Tensor, gradient: Tensor, of_alpha: bool = False
) -> tuple[Tensor, Tensor | None]:
    """Return the gradients in scores and alphas; see `cpu.gradients`."""
    probabilities, gradient = probabilities.contiguous(), gradient.contiguous()
    n = probabilities.shape[-1]
    rows, alphas = probabilities.numel() // n, alpha_of(alpha, probabilities.shape)
    form = form_of(alpha, probabilities.dtype)
    out = torch.empty_like(probabilities)
    in_alpha = probabilities.new_empty(*probabilities.shape[:-1], 1) if of_alpha else None
    given = (probabilities, gradient, out, *alphas[:3], out if in_alpha is None else in_alpha)
    constants = {
        "each_row": alphas.each_row,
        "power": max(form.power, 0),
        "of_alpha": of_alpha,
        "work": form.constants["work"],
    }
    short = short_rows(n, form.work)
    with device_of(probabilities):
        if short is not None:
            grid = (blocks(rows, short["height"]),)
            triton_kernels.gradient_short[grid](*given, rows, n, **constants, **short)
        else:
            width = _TILE // form.work.itemsize // 2
            triton_kernels.gradient_long[(rows,)](
                *given, n, **constants, width=width, num_warps=_warps(_TILE)
            )
    return out, in_alpha


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
    width = max(power_of_two(leading.keys), _LEAST)
    single = leading.keys <= _SINGLE and _bytes(inputs) <= _LONG_VECTOR
    needed = bytes_of_one_block(width, constants, query.itemsize)
    single = single and needed <= _shared_memory(query.device)
    with device_of(query):
        attention_kernels.attend[(blocks(leading.queries, block) * leading.count,)](
            *tensors, output, statistics, *numbers, **constants, single=single,
            height=block, width=width if single else block, num_warps=4,
        )  # fmt: skip
    return leading.shaped(output), (statistics, seed)


def backward(
    inputs: Inputs, kept: Sequence[Tensor], gradient: Tensor, wanted: Sequence[bool]
) -> tuple[Tensor | None, ...]:
    """Return the gradients in query, key, value, alpha and mask; see `cpu.backward`."""
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
        attention_kernels.gradient_of_queries[(blocks(leading.queries, block) * leading.count,)](
            *tensors, *known, grads[0], alpha_grad, *numbers, **constants, of_alpha=wanted[3],
            **sizes,
        )  # fmt: skip
        if wanted[1] or wanted[2]:
            attention_kernels.gradient_of_keys[(blocks(leading.keys, block) * leading.count,)](
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
