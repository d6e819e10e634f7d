"""Entmax of rows, and its gradients, by triton_kernels.py and triton_gradient_kernels.py."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import torch
from torch import Tensor

from onmt_entmax.sparse.arguments import working_type
from onmt_entmax.sparse.backends import triton_gradient_kernels, triton_kernels
from onmt_entmax.sparse.backends.triton_curves import NO_POWER
from onmt_entmax.sparse.backends.triton_launch import (
    alpha_of,
    blocks,
    form_of,
    on_device_of,
    power_of_two,
)

# Bytes of a row that stays in registers, in the type computed in.
_REGISTERS = 1 << 15
# Bytes of a tile of a longer row.
_TILE = 1 << 14
# Candidates that the list of a long row has room for.
_ROOM = 1024
# Scores of a program that solves several short rows.
_SHORT_SCORES = 512
# The narrowest row of a program.
_LEAST_WIDTH = 16


@cache
def short_rows(n: int, work: torch.dtype) -> dict[str, int] | None:
    """Return height, width and warps of a program of short rows, or None for long rows."""
    width = max(power_of_two(n), _LEAST_WIDTH)
    if width * work.itemsize > _REGISTERS:
        return None
    height = max(_SHORT_SCORES // width, 1)
    return {"height": height, "width": width, "num_warps": _warps(height * width * work.itemsize)}


def _warps(size: int) -> int:
    """Return the warps for a tile of so many bytes: about 16 float32 numbers a thread."""
    bytes_of_a_warp = 32 * 16 * 4  # of 32 threads
    return min(max(size // bytes_of_a_warp, 1), 16)


def _solve(
    scores: Tensor, alpha: float | Tensor, result: str, out: Tensor, conjugates: Sequence[Tensor]
) -> None:
    """Solve contiguous rows.

    Args:
        scores: ``(..., n)``.
        alpha: a number, or ``(..., 1)``.
        result: "probabilities" or "logs".
        out: receives them, ``(..., n)``.
        conjugates: receive shifted conjugates and maxima, each ``(rows,)``; or empty.
    """
    form, alphas = form_of(alpha, scores.dtype), alpha_of(alpha, scores.shape)
    n = scores.shape[-1]
    rows, short = scores.numel() // n, short_rows(n, form.work)
    unread = out  # a kernel takes tensors in these places, which it does not touch
    shifted, maxima = conjugates or (unread, unread)
    arguments = (scores, out, shifted, maxima, alphas.given, alphas.inner, alphas.count)
    constants = {
        "each_row": alphas.each_row,
        "result": result,
        "conjugate": bool(conjugates),
        **form.constants,
    }
    with on_device_of(scores):
        if short is not None:
            grid = (blocks(rows, short["height"]),)
            triton_kernels.solve_short[grid](*arguments, rows, n, **constants, **short)
            return
        listed_columns = torch.empty(rows, _ROOM, dtype=torch.int32, device=scores.device)
        triton_kernels.solve_long[(rows,)](
            *arguments, listed_columns, n, **constants,
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
    """Return shifted conjugates and maxima, and for `scaled` the probabilities."""
    p = torch.empty_like(scores)
    return *solve(scores, alpha, p), (p,)


def gradients(
    probabilities: Tensor, alpha: float | Tensor, gradient: Tensor, of_alpha: bool = False
) -> tuple[Tensor, Tensor | None]:
    """Return the gradients in scores ``(..., n)``, and with ``of_alpha`` in alphas ``(..., 1)``.

    Args:
        probabilities: ``(..., n)``.
        alpha: a number, or ``(..., 1)``.
        gradient: in the probabilities, ``(..., n)``.
        of_alpha: whether that in alpha is wanted, else None.
    """
    probabilities, gradient = probabilities.contiguous(), gradient.contiguous()
    n = probabilities.shape[-1]
    rows, alphas = probabilities.numel() // n, alpha_of(alpha, probabilities.shape)
    form = form_of(alpha, probabilities.dtype)
    out = torch.empty_like(probabilities)
    in_alpha = probabilities.new_empty(*probabilities.shape[:-1], 1) if of_alpha else None
    unread = out
    arguments = (
        probabilities, gradient, out, alphas.given, alphas.inner, alphas.count,
        unread if in_alpha is None else in_alpha,
    )  # fmt: skip
    constants = {
        "each_row": alphas.each_row,
        # Jacobian weights of softmax are no special case.
        "power": max(form.power, NO_POWER.value),
        "of_alpha": of_alpha,
        "work": form.constants["work"],
    }
    short = short_rows(n, form.work)
    with on_device_of(probabilities):
        if short is not None:
            grid = (blocks(rows, short["height"]),)
            triton_gradient_kernels.gradient_short[grid](*arguments, rows, n, **constants, **short)
        else:
            width = _TILE // form.work.itemsize // 2  # two tensors are read
            triton_gradient_kernels.gradient_long[(rows,)](
                *arguments, n, **constants, width=width, num_warps=_warps(_TILE)
            )
    return out, in_alpha
