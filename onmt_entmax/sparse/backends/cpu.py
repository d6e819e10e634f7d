"""Entmax on a CPU in native code, row by row in the caches: started here, written in C++.

The module is built when the package is installed, where there is a C++ compiler. Without it, and
for what it does not do (alpha below 1.1, or one for each row; tensors that PyTorch traces or
wraps), these functions return None and the PyTorch code does the work, with the same results to
rounding. With ``ONMT_ENTMAX_NATIVE=0`` in the environment it is left alone. In passes over the
scores, the mapping reads once and writes once, its gradient reads twice and writes once, the loss
reads once and its gradient writes once; where supports are large, that reads once more. The
mathematics is in ``native_threshold.h``.
"""

from __future__ import annotations

import math
import os
from importlib import import_module
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from onmt_entmax.sparse.arguments import has_memory, is_traced
from onmt_entmax.sparse.solvers import SMALLEST_POWER_ALPHA, refuse_rows_without_answer, whole_power

# Columns are 32-bit numbers there.
_LONGEST = 1 << 31
# Runs of rows with large supports above which every row is taken as one.
_MOST_RANGES = 8
_KINDS = {torch.float32: "f", torch.float64: "d"}
_Solved = tuple[Tensor, Tensor, Tensor, tuple[Tensor, Tensor, Tensor], list[tuple[int, int]]]


def load(name: str) -> ModuleType | None:
    """A native module of this package, if it was built and is wanted."""
    if os.environ.get("ONMT_ENTMAX_NATIVE") == "0":
        return None
    try:
        return import_module(name)
    except ImportError:
        return None


module = load("onmt_entmax.sparse.backends._native")


def _does(scores: Tensor, alpha: float) -> bool:
    """Whether the native module solves such scores."""
    return (
        module is not None
        and scores.dtype in _KINDS
        and scores.device.type == "cpu"
        and alpha >= SMALLEST_POWER_ALPHA
        and scores.numel() > 0
        and scores.shape[-1] < _LONGEST
        and has_memory(scores)
        and not is_traced()
    )


def _call(name: str, scores: Tensor, alpha: float, *tensors: Tensor | None, **more: int) -> Any:
    """Call a native function on rows of contiguous scores (..., n) and other tensors."""
    n = scores.shape[-1]
    common = (
        _KINDS[scores.dtype],
        alpha,
        whole_power(1 / (alpha - 1)) or -1,
        scores.numel() // n,
        n,
        torch.get_num_threads(),
    )
    addresses = (0 if tensor is None else tensor.data_ptr() for tensor in tensors)
    try:
        return getattr(module, name)(*common, scores.data_ptr(), *addresses, *more.values())
    except ValueError:
        refuse_rows_without_answer(scores.amax(-1))
        raise


def probabilities(scores: Tensor, alpha: float | Tensor, logs: bool = False) -> Tensor | None:
    """Entmax of scores (..., n), or its logarithm.

    Raises:
        ValueError: if a row is -inf everywhere.
    """
    if isinstance(alpha, Tensor) or not _does(scores, alpha):
        return None
    scores = scores.contiguous()
    out = torch.empty_like(scores)
    _call("probabilities", scores, alpha, out, logs=logs)
    return out


def log_probabilities(scores: Tensor, alpha: float | Tensor) -> Tensor | None:
    """Logarithm of entmax, -inf outside the support; as :func:`probabilities`."""
    return probabilities(scores, alpha, True)


def conjugate(scores: Tensor, alpha: float | Tensor, part: float) -> _Solved | None:
    """What :func:`onmt_entmax.mappings.conjugate.conjugate` finds, of the same arguments.

    Returns:
        Excess (rows,), maxima (rows, 1), thresholds (rows, 1) in float64; position, row and
        probability (k,) of the entries; ranges of dense rows.
    """
    if isinstance(alpha, Tensor) or not _does(scores, alpha):
        return None
    scores = scores.contiguous()
    rows = len(scores)
    excess = scores.new_empty(rows)
    maxima = scores.new_empty(rows, 1)
    threshold = scores.new_empty(rows, 1, dtype=torch.float64)
    dense = torch.empty(rows, dtype=torch.bool, device=scores.device)
    # Powers that are not whole cost several times as much as reading: make few of them.
    most = int(min(part if whole_power(1 / (alpha - 1)) else 8 * part, 1) * scores.shape[1])
    found = _call("conjugates", scores, alpha, excess, maxima, threshold, dense, most=most)
    if alpha > 2:  # as the PyTorch code has it: see `Conjugate.threshold`
        # A threshold next to zero is not to become one: nothing would be above it.
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
    return excess, maxima, threshold, (position, row, probability), ranges


def _ranges(mask: Tensor) -> list[tuple[int, int]]:
    """Ranges (begin, end) in which a mask (rows,) is true."""
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
) -> Tensor | None:
    """Probabilities (rows, n) of solved rows into ``out``, times a factor (rows,) for each row.

    Args and returns as :func:`onmt_entmax.mappings.conjugate.write_probabilities`.
    """
    if isinstance(alpha, Tensor) or not _does(scores, alpha):
        return None
    if not (scores.is_contiguous() and out.is_contiguous() and out.dtype == scores.dtype):
        return None
    if factors is not None and not has_memory(factors):
        return None
    threshold = threshold.double()
    if alpha > 2:
        # A lower bound again, which the sum and the difference may have rounded up.
        threshold = threshold - math.nextafter(1 / (alpha - 1), math.inf)
    kept = (maxima.contiguous(), threshold.contiguous())
    factors = None if factors is None else factors.to(scores.dtype).contiguous()
    _call("written", scores, alpha, *kept, factors, out)
    return out


def scores_gradient(
    probability: Tensor, alpha: float | Tensor, incoming: Tensor, dtype: torch.dtype
) -> Tensor | None:
    """Gradient in the scores, in their type, given that in the probabilities; all (..., n)."""
    if isinstance(alpha, Tensor) or not _does(probability, alpha) or dtype != probability.dtype:
        return None
    if not has_memory(incoming):
        return None
    probability, incoming = probability.contiguous(), incoming.to(dtype).contiguous()
    out = torch.empty_like(probability)
    _call("gradients", probability, alpha, incoming, out)
    return out


# Modules written in C++, which are there where the package was built with a compiler.
