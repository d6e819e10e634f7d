"""Starts the Triton kernels of entmax on scores (..., n); imported where there is Triton only.

Rows of any length: up to some width they stay in registers, from there on they are read in tiles.
Scores of the half types are read as they are and computed in float32; nothing waits for the GPU, so
a row of -inf everywhere gives nan instead of an error. In passes over the scores (what the time
goes to; in brackets, out of the second-level cache if that holds the rows under way):

===========================  =========================  ==============================
work                         short rows                 long rows
===========================  =========================  ==============================
mapping                      1 read, 1 write            1 read (and 1), 1 write
its gradient                 2 reads, 1 write           2 reads (and 2), 1 write
loss                         1 read                     1 read (and 1)
its gradient                 1 read, 1 write            1 read, 1 write
===========================  =========================  ==============================

So the floor of a training step over N x V float32 scores is 12 N V bytes for the loss and 20 N V
for the mapping; rows with more than ``_ROOM`` scores near the threshold are read once more for each
step of Newton's method. Of an alpha above 2, or one for each row, the loss's gradient is written to
memory of its own, summed and shared out: 3 reads and 2 writes more; the mapping's reads long rows
once more.
"""

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from onmt_entmax.sparse.backends import triton_kernels
from onmt_entmax.sparse.solvers import has_power_form, whole_power

# Scores in a program of several short rows; scores of a row that stays in registers, in bytes of
# the type computed in; scores of a tile of a longer one, likewise; scores that a list has room for.
_TOGETHER = 1024
_REGISTERS = 1 << 15
_TILE = 1 << 14
_ROOM = 1024
_LEAST_WIDTH = 16


class _Form(NamedTuple):
    """What the kernels are compiled for: see :mod:`onmt_entmax.mappings.kernels`."""

    log_form: bool
    power: int
    work: torch.dtype

    @property
    def constants(self) -> dict[str, object]:
        """The arguments of a kernel that are fixed when it is compiled."""
        work = tl.float64 if self.work == torch.float64 else tl.float32
        return {"log_form": self.log_form, "power": self.power, "work": work}


def _form(alpha: float | Tensor, dtype: torch.dtype) -> _Form:
    """The form to solve scores of a type in."""
    work = torch.float64 if dtype == torch.float64 else torch.float32
    if not isinstance(alpha, Tensor):
        if alpha == 1:
            return _Form(False, -1, work)
        if has_power_form(alpha):
            return _Form(False, whole_power(1 / (alpha - 1)), work)
    return _Form(True, 0, torch.float64)


def _betas(alpha: float | Tensor, scores: Tensor) -> tuple[Tensor, bool]:
    """beta as float64 (1,) or (rows,), and whether it is one for each row."""
    if isinstance(alpha, Tensor):
        rows = alpha.detach().expand(*scores.shape[:-1], 1).reshape(-1)
        return rows.double().sub_(1).contiguous(), True
    # Filled in on the device: copying a number there would wait.
    one = torch.full((1,), alpha - 1, dtype=torch.float64, device=scores.device)
    return one, False


def _short(n: int, work: torch.dtype) -> dict[str, int] | None:
    """Height, width and warps of a program of short rows; None for long ones."""
    width = max(triton.next_power_of_2(n), _LEAST_WIDTH)
    if width * work.itemsize > _REGISTERS:
        return None
    height = max(_TOGETHER // width, 1)
    return {"height": height, "width": width, "num_warps": _warps(height * width * work.itemsize)}


def _warps(size: int) -> int:
    """Warps for a tile of so many bytes: some 16 float32 numbers for each thread."""
    return min(max(size // (32 * 16 * 4), 4), 16)


def _solve(scores: Tensor, alpha: float | Tensor, result: str, outputs: list[Tensor]) -> None:
    """Solve contiguous rows into the outputs that the ``result`` has."""
    n = scores.shape[-1]
    rows = scores.numel() // n
    form = _form(alpha, scores.dtype)
    betas, each_row = _betas(alpha, scores)
    out = outputs[0] if result else scores
    parts = [scores] * 3 if result else outputs
    constants = {"each_row": each_row, "result": result, **form.constants}
    short = _short(n, form.work)
    if short is not None:
        grid = (triton.cdiv(rows, short["height"]),)
        triton_kernels.solve_short[grid](scores, out, *parts, betas, rows, n, **constants, **short)
        return
    columns = torch.empty(rows, _ROOM, dtype=torch.int32, device=scores.device)
    width = _TILE // form.work.itemsize
    triton_kernels.solve_long[(rows,)](
        scores, out, *parts, betas, columns, n, **constants,
        width=width, room=_ROOM, num_warps=_warps(_TILE),
    )  # fmt: skip


def probabilities(scores: Tensor, alpha: float | Tensor, result: str = "probabilities") -> Tensor:
    """Entmax of scores (..., n), or its logarithm if ``result`` is "logs".

    Args:
        scores: floating point, n >= 1; no autograd.
        alpha: a number >= 1, or (..., 1).
        result: "probabilities" or "logs".

    Returns:
        The shape of ``scores``; float32 for the half types, else their type.
    """
    scores = scores.contiguous()
    out = torch.empty_like(scores, dtype=_result_type(scores))
    _solve(scores, alpha, result, [out])
    return out


def log_probabilities(scores: Tensor, alpha: float | Tensor) -> Tensor:
    """Logarithm of entmax, -inf outside the support; as :func:`probabilities`."""
    return probabilities(scores, alpha, "logs")


def _result_type(scores: Tensor) -> torch.dtype:
    return torch.float64 if scores.dtype == torch.float64 else torch.float32


def conjugate(
    scores: Tensor, alpha: float | Tensor, part: float
) -> tuple[Tensor, Tensor, Tensor, None, list[tuple[int, int]]]:
    """Excess (rows,), maxima (rows, 1) and thresholds (rows, 1) of scores (rows, n).

    Args and meaning as in :class:`onmt_entmax.mappings.conjugate.Conjugate`; no entries, and all
    rows as dense ones.
    """
    scores = scores.contiguous()
    rows, dtype = len(scores), _result_type(scores)
    excess = torch.empty(rows, dtype=dtype, device=scores.device)
    maxima = excess.new_empty(rows, 1)
    threshold = excess.new_empty(rows, 1, dtype=_form(alpha, scores.dtype).work)
    _solve(scores, alpha, "", [excess, maxima, threshold])
    return excess, maxima, threshold, None, [(0, rows)]


def write_probabilities(
    scores: Tensor,
    alpha: float | Tensor,
    maxima: Tensor,
    threshold: Tensor,
    out: Tensor,
    factors: Tensor | None = None,
) -> Tensor:
    """Probabilities (rows, n) of solved rows into ``out``, times a factor (rows,) for each row.

    Args and returns as :func:`onmt_entmax.mappings.conjugate.write_probabilities`.
    """
    assert out.is_contiguous(), "kernels write rows one after the other"
    scores = scores.contiguous()
    rows, n = scores.shape
    form = _form(alpha, scores.dtype)
    betas, each_row = _betas(alpha, scores)
    # Above 2 the curve is steep at the threshold: share out what bisection left over.
    steep = isinstance(alpha, Tensor) or alpha > 2
    exact = out.new_empty(out.shape, dtype=_result_type(scores)) if steep else out
    width = min(max(triton.next_power_of_2(n), _LEAST_WIDTH), _TILE // form.work.itemsize)
    triton_kernels.write_probabilities[(rows, triton.cdiv(n, width))](
        scores, exact, maxima.contiguous(), threshold.contiguous(), betas,
        maxima if factors is None else factors.contiguous(), n,
        each_row=each_row, scaled=factors is not None and not steep, **form.constants,
        width=width, num_warps=4,
    )  # fmt: skip
    if steep:
        excess = torch.where(betas.unsqueeze(1) > 1, exact.sum(1, keepdim=True), 1.0)
        share = 1 / excess if factors is None else factors.unsqueeze(1) / excess
        out.copy_(exact.mul_(share))
    return out


def scores_gradient(
    probability: Tensor, alpha: float | Tensor, incoming: Tensor, dtype: torch.dtype
) -> Tensor:
    """Gradient in the scores, in their type, given that in the probabilities; all (..., n)."""
    probability, incoming = probability.contiguous(), incoming.contiguous()
    n = probability.shape[-1]
    rows = probability.numel() // n
    betas, each_row = _betas(alpha, probability)
    form = _Form(False, 0, _result_type(probability))
    power = 0 if isinstance(alpha, Tensor) or alpha == 1 else whole_power(1 / (alpha - 1))
    out = torch.empty_like(probability, dtype=dtype)
    given = {"each_row": each_row, "power": power, "work": form.constants["work"]}
    given["steep"] = isinstance(alpha, Tensor) or alpha > 2
    short = _short(n, form.work)
    if short is not None:
        grid = (triton.cdiv(rows, short["height"]),)
        triton_kernels.gradient_short[grid](
            probability, incoming, out, betas, rows, n, **given, **short
        )
    else:
        width = _TILE // form.work.itemsize // 2
        triton_kernels.gradient_long[(rows,)](
            probability, incoming, out, betas, n, **given, width=width, num_warps=_warps(_TILE)
        )
    return out
