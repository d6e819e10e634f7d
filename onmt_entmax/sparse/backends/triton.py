"""The Triton backend: entmax kernels for GPUs. Importing this module imports Triton.

Half types are read as they are and computed in float32. Nothing waits for the GPU, so a row of -inf
everywhere gives nan instead of an error. Passes over the scores, which take the time; those in
brackets come from the second-level cache if the rows in work fit there:

===========================  =========================  ==============================
operation                    short rows (in registers)  long rows (in tiles)
===========================  =========================  ==============================
mapping                      1 read, 1 write            1 read (and 1), 1 write
its gradient                 2 reads, 1 write           2 reads (and 2), 1 write
loss                         1 read                     1 read (and 1)
its gradient                 1 read, 1 write            1 read, 1 write
===========================  =========================  ==============================

The lower bound of a training step on N x V float32 scores is thus 12 N V bytes for the loss and
20 N V for the mapping. Rows with more than ``_ROOM`` scores near the threshold are read once more
in each Newton step. For alpha above 2, or one alpha a row, the loss's gradient takes 3 more reads
and 2 more writes to divide rows by their sums; the mapping's reads long rows once more.
"""

import warnings
from collections.abc import Callable
from contextlib import nullcontext
from functools import wraps
from typing import NamedTuple, ParamSpec, TypeVar

import torch
import triton
import triton.language as tl
from torch import Tensor

from onmt_entmax.sparse.arguments import has_memory
from onmt_entmax.sparse.backends import pytorch, triton_kernels
from onmt_entmax.sparse.conjugate import SPARSE_PART, Conjugate, Entries
from onmt_entmax.sparse.solvers import has_power_form, whole_power

P = ParamSpec("P")
R = TypeVar("R")

# Scores in a program of several short rows; bytes of a row that stays in registers, and of a tile
# of a longer one, in the type computed in; candidates that a list has room for.
_TOGETHER = 1024
_REGISTERS = 1 << 15
_TILE = 1 << 14
_ROOM = 1024
_LEAST_WIDTH = 16
# Above this alpha a float64 threshold does not determine the smallest probabilities: see
# `logs_above_two`.
_LARGEST_ALPHA = 3.0
# Longer rows would need more programs than the second dimension of a grid has.
_LONGEST = 1 << 27

writes_in_one_pass = True

failures: list[Exception] = []
"""What a kernel raised; with a failure, `has_kernels` is false and other backends do the work."""


def covers(scores: Tensor, alpha: float | Tensor, *others: Tensor | None) -> bool:
    """Return whether kernels take these arguments: an alpha that they solve, tensors in memory."""
    tensors = [given for given in (scores, alpha, *others) if isinstance(given, Tensor)]
    exact = isinstance(alpha, Tensor) or alpha <= _LARGEST_ALPHA
    return exact and scores.shape[-1] < _LONGEST and all(has_memory(tensor) for tensor in tensors)


def _or(fallback: Callable[P, R]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make a function start its kernels on the scores' device, and fall back if they fail."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def call(*arguments: P.args, **options: P.kwargs) -> R:
            scores = arguments[0]
            assert isinstance(scores, Tensor)
            try:
                with torch.cuda.device(scores.device) if scores.is_cuda else nullcontext():
                    return function(*arguments, **options)
            except torch.OutOfMemoryError:
                raise
            except Exception as error:
                failures.append(error)
                warnings.warn(
                    "the GPU kernels of entmax cannot be used, PyTorch does their work, slower: "
                    f"{error}",
                    RuntimeWarning,
                    stacklevel=2,
                )
                return fallback(*arguments, **options)

        return call

    return decorate


class _Form(NamedTuple):
    """The constants that kernels are compiled for.

    Attributes:
        log_form: whether the log form is solved, else the power form; see `solvers`.
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


def _form(alpha: float | Tensor, dtype: torch.dtype) -> _Form:
    """Return the form in which scores of a type are solved."""
    work = torch.float64 if dtype == torch.float64 else torch.float32
    if not isinstance(alpha, Tensor):
        if alpha == 1:
            return _Form(False, -1, work)
        if has_power_form(alpha):
            return _Form(False, whole_power(1 / (alpha - 1)), work)
    return _Form(True, 0, torch.float64)


def _betas(alpha: float | Tensor, scores: Tensor) -> tuple[Tensor, bool]:
    """Return alpha - 1 as float64 ``(1,)`` or ``(rows,)``, and whether each row has its own."""
    if isinstance(alpha, Tensor):
        rows = alpha.detach().expand(*scores.shape[:-1], 1).reshape(-1)
        return rows.double().sub_(1).contiguous(), True
    # Filled on the device: a copy from the CPU would synchronise.
    one = torch.full((1,), alpha - 1, dtype=torch.float64, device=scores.device)
    return one, False


def _short(n: int, work: torch.dtype) -> dict[str, int] | None:
    """Return height, width and warps of a program of short rows, or None for long rows."""
    width = max(triton.next_power_of_2(n), _LEAST_WIDTH)
    if width * work.itemsize > _REGISTERS:
        return None
    height = max(_TOGETHER // width, 1)
    return {"height": height, "width": width, "num_warps": _warps(height * width * work.itemsize)}


def _warps(size: int) -> int:
    """Return the warps for a tile of so many bytes: about 16 float32 numbers a thread."""
    return min(max(size // (32 * 16 * 4), 4), 16)


def _solve(scores: Tensor, alpha: float | Tensor, result: str, outputs: list[Tensor]) -> None:
    """Solve contiguous rows.

    Args:
        scores: ``(..., n)``, contiguous.
        alpha: a number, or ``(..., 1)``.
        result: "probabilities", "logs", or "" for the conjugate.
        outputs: memory for the result; of the conjugate shifted conjugates, maxima and thresholds.
    """
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


@_or(pytorch.probabilities)
def probabilities(scores: Tensor, alpha: float | Tensor) -> Tensor:
    """Return entmax of scores; see `Backend.probabilities`."""
    return _solve_into_new(scores, alpha, "probabilities")


@_or(pytorch.log_probabilities)
def log_probabilities(scores: Tensor, alpha: float | Tensor) -> Tensor:
    """Return the logarithm of entmax; see `Backend.log_probabilities`."""
    return _solve_into_new(scores, alpha, "logs")


def _solve_into_new(scores: Tensor, alpha: float | Tensor, result: str) -> Tensor:
    scores = scores.contiguous()
    out = torch.empty_like(scores, dtype=_result_type(scores))
    _solve(scores, alpha, result, [out])
    return out


def _result_type(scores: Tensor) -> torch.dtype:
    return torch.float64 if scores.dtype == torch.float64 else torch.float32


@_or(pytorch.conjugate)
def conjugate(
    scores: Tensor,
    alpha: float | Tensor,
    keep: bool = False,
    sparse_part: float = SPARSE_PART,
) -> Conjugate:
    """Solve rows of scores; see `Backend.conjugate`. All rows are dense, and nothing is kept."""
    scores = scores.contiguous()
    rows, dtype = len(scores), _result_type(scores)
    shifted = torch.empty(rows, dtype=dtype, device=scores.device)
    maxima = shifted.new_empty(rows, 1)
    threshold = shifted.new_empty(rows, 1, dtype=_form(alpha, scores.dtype).work)
    _solve(scores, alpha, "", [shifted, maxima, threshold])
    return Conjugate(shifted, maxima, threshold, Entries.none(shifted), [(0, rows)], None)


@_or(pytorch.write_probabilities)
def write_probabilities(
    scores: Tensor,
    alpha: float | Tensor,
    maxima: Tensor,
    threshold: Tensor,
    out: Tensor,
    factors: Tensor | None = None,
) -> None:
    """Write the probabilities of solved rows; see `Backend.write_probabilities`."""
    assert out.is_contiguous(), "kernels write rows one after the other"
    scores = scores.contiguous()
    rows, n = scores.shape
    form = _form(alpha, scores.dtype)
    betas, each_row = _betas(alpha, scores)
    # Above 2 the threshold leaves a sum that is not exactly 1: divide by it.
    above_two = isinstance(alpha, Tensor) or alpha > 2
    unscaled = out.new_empty(out.shape, dtype=_result_type(scores)) if above_two else out
    width = min(max(triton.next_power_of_2(n), _LEAST_WIDTH), _TILE // form.work.itemsize)
    triton_kernels.write_probabilities[(rows, triton.cdiv(n, width))](
        scores, unscaled, maxima.contiguous(), threshold.contiguous(), betas,
        maxima if factors is None else factors.contiguous(), n,
        each_row=each_row, scaled=factors is not None and not above_two, **form.constants,
        width=width, num_warps=4,
    )  # fmt: skip
    if above_two:
        sums = torch.where(betas.unsqueeze(1) > 1, unscaled.sum(1, keepdim=True), 1.0)
        share = 1 / sums if factors is None else factors.unsqueeze(1) / sums
        out.copy_(unscaled.mul_(share))


@_or(pytorch.scores_gradient)
def scores_gradient(
    probabilities: Tensor, alpha: float | Tensor, gradient: Tensor, dtype: torch.dtype
) -> Tensor:
    """Return the gradient in the scores; see `Backend.scores_gradient`."""
    probabilities, gradient = probabilities.contiguous(), gradient.contiguous()
    n = probabilities.shape[-1]
    rows = probabilities.numel() // n
    betas, each_row = _betas(alpha, probabilities)
    form = _Form(False, 0, _result_type(probabilities))
    power = 0 if isinstance(alpha, Tensor) or alpha == 1 else whole_power(1 / (alpha - 1))
    out = torch.empty_like(probabilities, dtype=dtype)
    given = {"each_row": each_row, "power": power, "work": form.constants["work"]}
    given["above_two"] = isinstance(alpha, Tensor) or alpha > 2
    short = _short(n, form.work)
    if short is not None:
        grid = (triton.cdiv(rows, short["height"]),)
        triton_kernels.gradient_short[grid](
            probabilities, gradient, out, betas, rows, n, **given, **short
        )
    else:
        width = _TILE // form.work.itemsize // 2
        triton_kernels.gradient_long[(rows,)](
            probabilities, gradient, out, betas, n, **given, width=width, num_warps=_warps(_TILE)
        )
    return out
