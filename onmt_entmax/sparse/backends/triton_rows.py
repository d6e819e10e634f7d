"""Entmax of rows of scores on a GPU, and its gradients.

A short row fits in the registers of a program; triton_short_rows.py solves it. A longer one is read
in tiles; triton_long_rows.py solves it. triton_gradient_kernels.py has the gradients of both.
"""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor

from onmt_entmax.sparse.backends import triton_gradient_kernels, triton_long_rows, triton_short_rows
from onmt_entmax.sparse.backends.triton_alphas import RowAlphas, row_alphas
from onmt_entmax.sparse.backends.triton_launch import blocks, form_of, on_device_of, power_of_two
from onmt_entmax.sparse.precision import working_type

# The most bytes of a short row in the type computed in, so that it stays in the registers of a
# program: 8,192 scores in float32.
_REGISTERS = 1 << 15
# Bytes of the tiles in which a long row is read.
_TILE = 1 << 14
# Candidates that the list of a long row has room for.
_ROOM = 1024
# Scores of the short rows that a program solves together, if several rows fit.
_SHORT_SCORES = 512
# The narrowest tile of short rows.
_LEAST_WIDTH = 16


@cache
def short_tile(n: int, work: torch.dtype) -> dict[str, int] | None:
    """Return the tile of a program of short rows, as arguments of its kernel; None for long rows.

    Args:
        n: number of scores of a row.
        work: the type computed in.
    """
    width = max(power_of_two(n), _LEAST_WIDTH)
    if width * work.itemsize > _REGISTERS:
        return None
    height = max(_SHORT_SCORES // width, 1)
    return {"height": height, "width": width, "num_warps": _warps(height * width * work.itemsize)}


def _warps(size: int) -> int:
    """Return the warps for a tile of `size` bytes: about 16 float32 numbers a thread."""
    bytes_of_a_warp = 32 * 16 * 4  # of 32 threads
    return min(max(size // bytes_of_a_warp, 1), 16)


def _solve(
    scores: Tensor,
    alpha: float | Tensor,
    result: str,
    out: Tensor,
    conjugates: tuple[Tensor, Tensor] | None = None,
) -> None:
    """Solve contiguous rows.

    Args:
        scores: ``(..., n)``, contiguous.
        alpha: a number from 1 to 2, or a tensor of such numbers that broadcasts to ``(..., 1)``.
        result: "probabilities" or "logs".
        out: receives the result, ``(..., n)``, contiguous.
        conjugates: two tensors ``(rows,)``, which receive shifted conjugates and maxima; None:
            these are not computed.
    """
    form, alphas = form_of(alpha, scores.dtype), row_alphas(alpha, scores.shape)
    n = scores.shape[-1]
    rows, tile = scores.numel() // n, short_tile(n, form.work)
    # A kernel takes some tensor for each argument; without conjugates it touches neither.
    shifted, maxima = conjugates or (out, out)
    arguments = {
        "scores": scores,
        "out": out,
        "shifted": shifted,
        "maxima": maxima,
        **_alpha_arguments(alphas),
        "n": n,
        "result": result,
        "conjugate": conjugates is not None,
        **form.constants,
    }
    with on_device_of(scores):
        if tile is not None:
            grid = (blocks(rows, tile["height"]),)
            triton_short_rows.solve_short[grid](**arguments, rows=rows, **tile)
            return
        listed_columns = torch.empty(rows, _ROOM, dtype=torch.int32, device=scores.device)
        triton_long_rows.solve_long[(rows,)](
            **arguments,
            listed_columns=listed_columns,
            width=_TILE // form.work.itemsize,
            room=_ROOM,
            num_warps=_warps(_TILE),
        )


def _alpha_arguments(alphas: RowAlphas) -> dict[str, object]:
    """Return alphas as arguments of a kernel."""
    return {
        "alpha": alphas.values,
        "inner": alphas.inner,
        "count": alphas.count,
        "each_row": alphas.each_row,
    }


def mapping(scores: Tensor, alpha: float | Tensor, logs: bool) -> Tensor:
    """Return probabilities ``(..., n)`` or their logarithms; see `reference.mapping`."""
    scores = scores.contiguous()
    out = torch.empty_like(scores, dtype=working_type(scores))
    _solve(scores, alpha, "logs" if logs else "probabilities", out)
    return out


def solve(scores: Tensor, alpha: float | Tensor, out: Tensor) -> tuple[Tensor, Tensor]:
    """Write probabilities, and return shifted conjugates and maxima; see `backends.solve`."""
    shifted, maxima = scores.new_empty(len(scores)), scores.new_empty(len(scores))
    _solve(scores, alpha, "probabilities", out, (shifted, maxima))
    return shifted, maxima


def conjugate(scores: Tensor, alpha: float | Tensor) -> tuple[Tensor, Tensor, tuple[Tensor]]:
    """Return shifted conjugates and maxima, and the probabilities; see `reference.conjugate`."""
    probabilities = torch.empty_like(scores)
    return *solve(scores, alpha, probabilities), (probabilities,)


def gradients(
    probabilities: Tensor, alpha: float | Tensor, gradient: Tensor, wants_alpha: bool = False
) -> tuple[Tensor, Tensor | None]:
    """Return the gradients with respect to the scores and to alpha.

    Args:
        probabilities: ``(..., n)``.
        alpha: a number, or ``(..., 1)``.
        gradient: upstream gradient with respect to the probabilities, ``(..., n)``.
        wants_alpha: whether to compute the gradient with respect to alpha.

    Returns:
        The gradients with respect to the scores, ``(..., n)``, and to the alpha of each row,
        ``(..., 1)``, in the type of the probabilities; the latter is None unless it is wanted.
    """
    probabilities, gradient = probabilities.contiguous(), gradient.contiguous()
    form, alphas = form_of(alpha, probabilities.dtype), row_alphas(alpha, probabilities.shape)
    n = probabilities.shape[-1]
    rows, tile = probabilities.numel() // n, short_tile(n, form.work)
    out = torch.empty_like(probabilities)
    grad_alpha = probabilities.new_empty(*probabilities.shape[:-1], 1) if wants_alpha else None
    arguments = {
        "probabilities": probabilities,
        "incoming": gradient,
        "out": out,
        **_alpha_arguments(alphas),
        # Without `wants_alpha`, the kernel touches no `alpha_out`.
        "alpha_out": out if grad_alpha is None else grad_alpha,
        "n": n,
        "power": form.jacobian_power,
        "wants_alpha": wants_alpha,
        "work": form.constants["work"],
    }
    with on_device_of(probabilities):
        if tile is not None:
            grid = (blocks(rows, tile["height"]),)
            triton_gradient_kernels.gradient_short[grid](**arguments, rows=rows, **tile)
        else:
            width = _TILE // form.work.itemsize // 2  # two tensors are read
            triton_gradient_kernels.gradient_long[(rows,)](
                **arguments, width=width, num_warps=_warps(_TILE)
            )
    return out, grad_alpha
