"""Entmax in C++: float32 and float64 rows on a CPU, each row in the cache; alpha from 1 to 2.

It exists where the package was installed with a C++ compiler and ``ONMT_ENTMAX_NATIVE`` is not 0.
``csrc/native_threshold.h`` explains the method. The mapping reads the scores once and writes once,
its gradient reads twice and writes once.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from onmt_entmax.sparse.arguments import refuse_rows_without_answer, working_type

KINDS = {torch.float32: "f", torch.float64: "d"}
# The structs of csrc/native.cpp.
ROWS, HEADS = "d12q", "9q2d6q"
# A support of up to this part of a row is kept.
_ROOM = 32


def load(name: str) -> ModuleType | None:
    """Return a C++ extension module of this package, or None without it."""
    if os.environ.get("ONMT_ENTMAX_NATIVE") == "0":
        return None
    try:
        return import_module(name)
    except ImportError:
        return None


module: Any = load("onmt_entmax.sparse.backends._native")


def run(function: Callable[..., None], rows: Tensor, layout: str, *values: object) -> None:
    """Run a C++ function on contiguous rows ``(..., n)``.

    Args:
        function: of the module.
        rows: of its type and size.
        layout: of the struct that it takes, for `struct.pack`.
        values: of the struct; tensors become addresses, None becomes 0.
    """
    packed = struct.pack(
        layout, *(x.data_ptr() if isinstance(x, Tensor) else 0 if x is None else x for x in values)
    )
    n = rows.shape[-1]
    function(KINDS[rows.dtype], torch.get_num_threads(), rows.numel() // n, n, packed)


def alphas_of(alpha: Tensor, rows: Tensor) -> Tensor:
    """Return the alphas ``(..., 1)`` of rows one after the other, in float64."""
    return alpha.detach().double().expand(*rows.shape[:-1], 1).contiguous()


def _on_rows(
    function: Callable[..., None], scores: Tensor, alpha: float | Tensor, *values: object
) -> None:
    """Run a C++ function on contiguous rows; see ``Rows`` in csrc/native.cpp for the values."""
    each = alphas_of(alpha, scores) if isinstance(alpha, Tensor) else None
    number = 2.0 if isinstance(alpha, Tensor) else alpha
    values += (None,) * (10 - len(values))
    try:
        run(function, scores, ROWS, number, each, scores, *values)
    except ValueError:
        refuse_rows_without_answer(scores.amax(-1))
        raise


def mapping(scores: Tensor, alpha: float | Tensor, logs: bool) -> Tensor:
    """Return probabilities ``(..., n)`` or their logarithms; see `reference.mapping`."""
    scores = scores.to(working_type(scores)).contiguous()
    out = torch.empty_like(scores)
    _on_rows(module.map_rows, scores, alpha, out, None, None, logs)
    return out


def solve(scores: Tensor, alpha: float | Tensor, out: Tensor) -> tuple[Tensor, Tensor]:
    """Write probabilities of rows, return shifted conjugates and maxima; see `backends.solve`."""
    shifted, maxima = scores.new_empty(len(scores)), scores.new_empty(len(scores))
    _on_rows(module.map_rows, scores, alpha, out, shifted, maxima)
    return shifted, maxima


def conjugate(scores: Tensor, alpha: float | Tensor) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
    """Return shifted conjugates, maxima, and what :func:`scaled` needs: small supports."""
    rows, room = len(scores), scores.shape[1] // _ROOM
    shifted, maxima = scores.new_empty(rows), scores.new_empty(rows)
    kept = (
        torch.empty(rows, dtype=torch.float64, device=scores.device),
        torch.empty(rows, dtype=torch.int64, device=scores.device),
        torch.empty(rows, room, dtype=torch.int32, device=scores.device),
        scores.new_empty(rows, room),
    )
    _on_rows(module.map_rows, scores, alpha, None, shifted, maxima, 0, *kept, room)
    return shifted, maxima, (maxima, *kept)


def scaled(
    scores: Tensor, alpha: float | Tensor, kept: Sequence[Tensor], factors: Tensor
) -> Tensor:
    """Return the probabilities of rows times ``factors`` ``(rows,)``; see :func:`conjugate`."""
    out, (maxima, *rest) = torch.empty_like(scores), kept
    room, factors = rest[-1].shape[1], factors.contiguous()
    _on_rows(module.scale_rows, scores, alpha, out, None, maxima, 0, *rest, room, factors)
    return out


def gradients(
    probabilities: Tensor, alpha: float | Tensor, gradient: Tensor, of_alpha: bool = False
) -> tuple[Tensor, Tensor | None]:
    """Return the gradients in the scores, and with ``of_alpha`` in each row's alpha ``(..., 1)``.

    Args:
        probabilities: ``(..., n)``.
        alpha: a number, or ``(..., 1)``.
        gradient: in the probabilities.
        of_alpha: whether that in alpha is wanted.
    """
    probabilities = probabilities.contiguous()
    gradient = gradient.to(probabilities.dtype).contiguous()
    if isinstance(alpha, Tensor):
        alphas = alphas_of(alpha, probabilities)
    else:
        alphas = torch.tensor([alpha], dtype=torch.float64, device="cpu")
    out = torch.empty_like(probabilities)
    in_alpha = None
    if of_alpha:
        in_alpha = probabilities.new_empty(*probabilities.shape[:-1], 1, dtype=torch.float64)
    # A row is a head of attention with one query, without mask, scale and dropout.
    run(
        module.backward, probabilities, HEADS,
        0, 1, alphas, alphas.numel(), None, 0, 0, 0, 0,
        1.0, 0.0, 0, probabilities, None, gradient, out, in_alpha,
    )  # fmt: skip
    return out, in_alpha
