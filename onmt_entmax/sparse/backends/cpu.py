"""The C++ backend: entmax of float32 and float64 rows on a CPU, each row in the cache.

It exists where the package was installed with a C++ compiler and ``ONMT_ENTMAX_NATIVE`` is not 0.
``csrc/native_threshold.h`` explains the method. In passes over the scores, the mapping reads once
and writes once, its gradient reads twice and writes once, the loss reads once, and its gradient
writes once and, for large supports, reads once. Alpha is a number, or one for each row.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from onmt_entmax.sparse import jacobian
from onmt_entmax.sparse.arguments import has_memory, is_traced
from onmt_entmax.sparse.conjugate import SPARSE_PART, Conjugate, Entries
from onmt_entmax.sparse.solvers import SMALLEST_POWER_ALPHA, refuse_rows_without_answer, whole_power

# The C++ code counts columns in 32 bits.
_LONGEST = 1 << 31
# With more ranges of dense rows than these, all rows are dense.
_MOST_RANGES = 8
writes_in_one_pass = True
_KINDS = {torch.float32: "f", torch.float64: "d"}


def load(name: str) -> ModuleType | None:
    """Return a C++ extension module of this package, or None without it."""
    if os.environ.get("ONMT_ENTMAX_NATIVE") == "0":
        return None
    try:
        return import_module(name)
    except ImportError:
        return None


module: Any = load("onmt_entmax.sparse.backends._native")
attention_module: Any = load("onmt_entmax.sparse.backends._attention")


def covers(scores: Tensor, alpha: float | Tensor, *others: Tensor | None) -> bool:
    """Return whether the C++ code takes these arguments: alphas >= 1.1, tensors in memory."""
    tensors = [given for given in (scores, alpha, *others) if isinstance(given, Tensor)]
    return (
        module is not None
        and scores.dtype in _KINDS
        and scores.device.type == "cpu"
        and scores.numel() > 0
        and scores.shape[-1] < _LONGEST
        and not is_traced()
        and all(map(has_memory, tensors))
        and bool((alpha.amin() if isinstance(alpha, Tensor) else alpha) >= SMALLEST_POWER_ALPHA)
    )


def _call(
    function: Callable[..., Any],
    scores: Tensor,
    alpha: float | Tensor,
    *tensors: Tensor | None,
    option: int | None = None,
) -> Any:
    """Call a C++ function on contiguous scores ``(..., n)``, other tensors and its last option."""
    n = scores.shape[-1]
    alphas, number, whole = None, alpha, -1
    if isinstance(alpha, Tensor):
        alphas, number = _alphas_of_rows(alpha, scores), 0.0
    else:
        whole = whole_power(1 / (alpha - 1)) or -1
    arguments = [0 if tensor is None else tensor.data_ptr() for tensor in tensors]
    if option is not None:
        arguments.append(option)
    try:
        return function(
            _KINDS[scores.dtype],
            number,
            whole,
            0 if alphas is None else alphas.data_ptr(),
            scores.numel() // n,
            n,
            torch.get_num_threads(),
            scores.data_ptr(),
            *arguments,
        )
    except ValueError:
        refuse_rows_without_answer(scores.amax(-1))
        raise


def probabilities(scores: Tensor, alpha: float | Tensor) -> Tensor:
    """Return entmax of scores; see `Backend.probabilities`."""
    scores = scores.contiguous()
    out = torch.empty_like(scores)
    _call(module.probabilities, scores, alpha, out, option=False)
    return out


def log_probabilities(scores: Tensor, alpha: float | Tensor) -> Tensor:
    """Return the logarithm of entmax; see `Backend.log_probabilities`."""
    scores = scores.contiguous()
    out = torch.empty_like(scores)
    _call(module.probabilities, scores, alpha, out, option=True)
    return out


def conjugate(
    scores: Tensor,
    alpha: float | Tensor,
    keep: bool = False,
    sparse_part: float = SPARSE_PART,
) -> Conjugate:
    """Solve rows of scores; see `Backend.conjugate`. Nothing of dense rows is kept."""
    scores = scores.contiguous()
    rows, n = scores.shape
    shifted = scores.new_empty(rows)
    maxima = scores.new_empty(rows, 1)
    threshold = scores.new_empty(rows, 1, dtype=torch.float64)
    dense = torch.empty(rows, dtype=torch.bool, device=scores.device)
    if isinstance(alpha, Tensor):
        part = 0.0  # the gradients of entries are for one alpha
    else:
        # Powers that are not products cost several reads, so more entries pay.
        part = sparse_part if whole_power(1 / (alpha - 1)) else 8 * sparse_part
    most = int(min(part, 1) * n)
    found = _call(module.conjugates, scores, alpha, shifted, maxima, threshold, dense, option=most)
    if isinstance(alpha, Tensor) or alpha > 2:
        above_two, end = _largest_shift(alpha)
        # The PyTorch code's threshold is the shift; it must stay below its largest value, above
        # which the support would be empty.
        shift = (threshold + end).minimum(end.nextafter(end.new_zeros(())))
        threshold = torch.where(above_two, shift, threshold)
    ranges = _ranges(dense)
    if len(ranges) > _MOST_RANGES:
        ranges, found = [(0, rows)], (b"", b"", b"")
    types = (torch.int64, torch.int64, scores.dtype)
    position, row, probability = (
        torch.frombuffer(part, dtype=dtype) if part else scores.new_empty(0, dtype=dtype)
        for part, dtype in zip(found, types, strict=True)
    )
    return Conjugate(shifted, maxima, threshold, Entries(position, row, probability), ranges, None)


def _largest_shift(alpha: float | Tensor) -> tuple[Tensor, Tensor]:
    """Return whether alphas are above 2, and their ``1 / (alpha - 1)``, in float64."""
    alphas = torch.as_tensor(alpha, dtype=torch.float64).detach()
    return alphas > 2, 1 / (alphas - 1)


def _ranges(mask: Tensor) -> list[tuple[int, int]]:
    """Return the ranges (begin, end) in which a mask ``(rows,)`` is true."""
    if not bool(mask.any()):
        return []
    if bool(mask.all()):
        return [(0, len(mask))]
    no = mask.new_zeros(1)
    edges = torch.cat([no, mask, no]).to(torch.int8).diff().nonzero().squeeze(1).tolist()
    return list(zip(edges[::2], edges[1::2], strict=True))


def write_probabilities(
    scores: Tensor,
    alpha: float | Tensor,
    maxima: Tensor,
    threshold: Tensor,
    out: Tensor,
    factors: Tensor | None = None,
) -> None:
    """Write the probabilities of solved rows; see `Backend.write_probabilities`."""
    assert out.is_contiguous(), "C++ writes rows one after the other"
    assert out.dtype == scores.dtype, "C++ writes in the type of the scores"
    threshold = threshold.double()
    if isinstance(alpha, Tensor) or alpha > 2:
        above_two, end = _largest_shift(alpha)
        # From the shift back to a lower bound of the threshold, despite rounding.
        lower = threshold - end.nextafter(end.new_full((), torch.inf))
        threshold = torch.where(above_two, lower, threshold)
    factors = None if factors is None else factors.to(scores.dtype).contiguous()
    scores, maxima, threshold = scores.contiguous(), maxima.contiguous(), threshold.contiguous()
    _call(module.written, scores, alpha, maxima, threshold, factors, out)


def scores_gradient(
    probabilities: Tensor, alpha: float | Tensor, gradient: Tensor, dtype: torch.dtype
) -> Tensor:
    """Return the gradient in the scores; see `Backend.scores_gradient`."""
    return _gradient(probabilities, alpha, gradient, logs=False).to(dtype)


def log_scores_gradient(logs: Tensor, alpha: float | Tensor, gradient: Tensor) -> Tensor:
    """Return the gradient in the scores; see `Backend.log_scores_gradient`."""
    if jacobian.may_exceed_two(alpha):
        return jacobian.log_scores_gradient(logs, alpha, gradient)
    return _gradient(logs, alpha, gradient, logs=True)


def _gradient(result: Tensor, alpha: float | Tensor, gradient: Tensor, logs: bool) -> Tensor:
    result = result.contiguous()
    gradient = gradient.to(result.dtype).contiguous()
    out = torch.empty_like(result)
    _call(module.gradients, result, alpha, gradient, out, option=logs)
    return out


def covers_gradients(probabilities: Tensor, alpha: Tensor, gradient: Tensor) -> bool:
    """Return whether :func:`gradients` takes these arguments; alphas may be below 1.1 there."""
    return (
        attention_module is not None
        and probabilities.dtype in _KINDS
        and probabilities.device.type == "cpu"
        and probabilities.numel() > 0
        and not is_traced()
        and all(map(has_memory, (probabilities, alpha, gradient)))
    )


def gradients(
    probabilities: Tensor, alpha: Tensor, gradient: Tensor, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """Return the gradients in the scores ``(..., n)`` and in the alphas ``(..., 1)`` of the rows.

    Args:
        probabilities: ``(..., n)``.
        alpha: ``(..., 1)``.
        gradient: in the probabilities, ``(..., n)``.
        dtype: of the scores.
    """
    probabilities = probabilities.contiguous()
    n = probabilities.shape[-1]
    rows = probabilities.numel() // n
    alphas = _alphas_of_rows(alpha, probabilities)
    # Written over by the gradient in the scores.
    out = torch.empty_like(probabilities).copy_(gradient)
    in_alpha = probabilities.new_empty(*probabilities.shape[:-1], 1, dtype=torch.float64)
    # A row of attention weights is a head with one query, without mask, scale and dropout.
    heads = struct.pack(
        "11q2d5q",
        *(0, rows, 1, n, alphas.data_ptr(), rows),
        *(0, 0, 0, 0, 0),
        *(1.0, 0.0, 0),
        *(probabilities.data_ptr(), 0, out.data_ptr(), in_alpha.data_ptr()),
    )
    attention_module.backward(_KINDS[probabilities.dtype], torch.get_num_threads(), heads)
    return out.to(dtype), in_alpha


def _alphas_of_rows(alpha: Tensor, scores: Tensor) -> Tensor:
    """Return the alphas ``(..., 1)`` of rows one after the other, in float64."""
    return alpha.detach().double().expand(*scores.shape[:-1], 1).contiguous()
