"""The C++ backend: entmax of float32 and float64 rows on a CPU, each row in the cache.

It exists where the package was installed with a C++ compiler and ``ONMT_ENTMAX_NATIVE`` is not 0.
``csrc/native_threshold.h`` explains the method. In passes over the scores, the mapping reads once
and writes once, its gradient reads twice and writes once, the loss reads once, and its gradient
writes once and, for large supports, reads once.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

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


def covers(scores: Tensor, alpha: float | Tensor, *others: Tensor | None) -> bool:
    """Return whether the C++ code takes these arguments: one alpha >= 1.1, tensors in memory."""
    return (
        module is not None
        and not isinstance(alpha, Tensor)
        and scores.dtype in _KINDS
        and scores.device.type == "cpu"
        and alpha >= SMALLEST_POWER_ALPHA
        and scores.numel() > 0
        and scores.shape[-1] < _LONGEST
        and has_memory(scores)
        and not is_traced()
        and all(other is None or has_memory(other) for other in others)
    )


def _call(
    function: Callable[..., Any],
    scores: Tensor,
    alpha: float | Tensor,
    *tensors: Tensor | None,
    option: int | None = None,
) -> Any:
    """Call a C++ function on contiguous scores ``(..., n)``, other tensors and its last option."""
    assert not isinstance(alpha, Tensor), "`covers` refuses it"
    n = scores.shape[-1]
    arguments = [0 if tensor is None else tensor.data_ptr() for tensor in tensors]
    if option is not None:
        arguments.append(option)
    try:
        return function(
            _KINDS[scores.dtype],
            alpha,
            whole_power(1 / (alpha - 1)) or -1,
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
    assert not isinstance(alpha, Tensor), "`covers` refuses it"
    scores = scores.contiguous()
    rows, n = scores.shape
    shifted = scores.new_empty(rows)
    maxima = scores.new_empty(rows, 1)
    threshold = scores.new_empty(rows, 1, dtype=torch.float64)
    dense = torch.empty(rows, dtype=torch.bool, device=scores.device)
    # Powers that are not products cost several reads, so more entries pay.
    part = sparse_part if whole_power(1 / (alpha - 1)) else 8 * sparse_part
    most = int(min(part, 1) * n)
    found = _call(module.conjugates, scores, alpha, shifted, maxima, threshold, dense, option=most)
    if alpha > 2:
        # The PyTorch code's threshold is the shift; it must stay below its largest value, above
        # which the support would be empty.
        end = 1 / (alpha - 1)
        threshold.add_(end).clamp_(max=math.nextafter(end, 0.0))
    ranges = _ranges(dense)
    if len(ranges) > _MOST_RANGES:
        ranges, found = [(0, rows)], (b"", b"", b"")
    types = (torch.int64, torch.int64, scores.dtype)
    position, row, probability = (
        torch.frombuffer(part, dtype=dtype) if part else scores.new_empty(0, dtype=dtype)
        for part, dtype in zip(found, types, strict=True)
    )
    return Conjugate(shifted, maxima, threshold, Entries(position, row, probability), ranges, None)


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
    assert not isinstance(alpha, Tensor), "`covers` refuses it"
    assert out.is_contiguous(), "C++ writes rows one after the other"
    assert out.dtype == scores.dtype, "C++ writes in the type of the scores"
    threshold = threshold.double()
    if alpha > 2:
        # From the shift back to a lower bound of the threshold, despite rounding.
        threshold = threshold - math.nextafter(1 / (alpha - 1), math.inf)
    factors = None if factors is None else factors.to(scores.dtype).contiguous()
    scores, maxima, threshold = scores.contiguous(), maxima.contiguous(), threshold.contiguous()
    _call(module.written, scores, alpha, maxima, threshold, factors, out)


def scores_gradient(
    probabilities: Tensor, alpha: float | Tensor, gradient: Tensor, dtype: torch.dtype
) -> Tensor:
    """Return the gradient in the scores; see `Backend.scores_gradient`."""
    probabilities = probabilities.contiguous()
    gradient = gradient.to(probabilities.dtype).contiguous()
    out = torch.empty_like(probabilities)
    _call(module.gradients, probabilities, alpha, gradient, out)
    return out.to(dtype)
