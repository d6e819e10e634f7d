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
and 2 more writes to divide rows by their sums; above 2 the mapping's reads long rows once more.

A mapping starts one kernel, its gradient another; with one alpha a row a second solves the rows
above 2, if there are any. The loss of class targets starts one, and another for the sum or mean;
its gradient starts one.
"""

import struct
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cache, wraps
from typing import NamedTuple, ParamSpec, TypeVar

import torch
import triton.language as tl
from torch import Tensor

from onmt_entmax.sparse.arguments import has_memory
from onmt_entmax.sparse.backends import LARGEST_ALPHA, pytorch, triton_kernels
from onmt_entmax.sparse.conjugate import SPARSE_PART, Conjugate, Entries
from onmt_entmax.sparse.solvers import has_power_form, whole_power

P = ParamSpec("P")
R = TypeVar("R")

# Scores in a program of several short rows; bytes of a row that stays in registers, and of a tile
# of a longer one, in the type computed in; candidates that a list has room for.
_TOGETHER = 512
_REGISTERS = 1 << 15
_TILE = 1 << 14
_ROOM = 1024
_LEAST_WIDTH = 16
# Tiles of short rows in which a program looks for alphas above 2.
_LOOKED_THROUGH = 8
# Losses that are added at once.
_SUMMED = 4096
# Longer rows would need more programs than the second dimension of a grid has.
_LONGEST = 1 << 27

writes_in_one_pass = True

failures: list[Exception] = []
"""What a kernel raised; with a failure, `has_kernels` is false and other backends do the work."""


def covers(scores: Tensor, alpha: float | Tensor, *others: Tensor | None) -> bool:
    """Return whether kernels take these arguments: an alpha that they solve, tensors in memory."""
    tensors = [given for given in (scores, alpha, *others) if isinstance(given, Tensor)]
    exact = isinstance(alpha, Tensor) or alpha <= LARGEST_ALPHA
    return exact and scores.shape[-1] < _LONGEST and all(has_memory(tensor) for tensor in tensors)


def _or(fallback: Callable[P, R]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make a function start its kernels on the scores' device, and fall back if they fail."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def call(*arguments: P.args, **options: P.kwargs) -> R:
            scores = arguments[0]
            assert isinstance(scores, Tensor)
            try:
                with _device_of(scores):
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


def or_none(function: Callable[P, R | None]) -> Callable[P, R | None]:
    """Make a function start its kernels on the scores' device, and return None if they fail."""

    def nothing(*arguments: P.args, **options: P.kwargs) -> R | None:
        return None

    return _or(nothing)(function)


def _device_of(scores: Tensor) -> AbstractContextManager[object]:
    """Return a context in which kernels start on the scores' device."""
    if not scores.is_cuda or scores.device.index == torch.cuda.current_device():
        return nullcontext()
    return torch.cuda.device(scores.device)


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


def form_of(alpha: float | Tensor, dtype: torch.dtype) -> _Form:
    """Return the form in which scores of a type are solved; float64 where alpha may be above 2."""
    work = torch.float64 if dtype == torch.float64 else torch.float32
    if isinstance(alpha, Tensor):
        return _Form(True, 0, torch.float64)
    return _form_of_number(alpha, work)


# What a small input waits for is Python, which starts the kernels; so constants are kept.
@cache
def _form_of_number(alpha: float, work: torch.dtype) -> _Form:
    if alpha > 2:
        return _Form(True, 0, torch.float64)
    if alpha == 1:
        return _Form(False, -1, work)
    if has_power_form(alpha):
        return _Form(False, whole_power(1 / (alpha - 1)), work)
    return _Form(True, 0, work)


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


def alpha_of(alpha: float | Tensor, shape: torch.Size) -> _Alpha:
    """Return alpha for the rows of scores of a shape, as a rule without a copy."""
    if not isinstance(alpha, Tensor):
        # A number of Python would arrive in float32, a tensor would have to be filled.
        return _alpha_of_number(alpha)
    alpha = alpha.detach().expand(*shape[:-1], 1)
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
    width = max(power_of_two(n), _LEAST_WIDTH)
    if width * work.itemsize > _REGISTERS:
        return None
    height = max(_TOGETHER // width, 1)
    return {"height": height, "width": width, "num_warps": _warps(height * width * work.itemsize)}


def _warps(size: int) -> int:
    """Return the warps for a tile of so many bytes: about 16 float32 numbers a thread."""
    return min(max(size // (32 * 16 * 4), 1), 16)


def _solve(scores: Tensor, alpha: float | Tensor, result: str, outputs: list[Tensor]) -> None:
    """Solve contiguous rows.

    Args:
        scores: ``(..., n)``, contiguous.
        alpha: a number, or ``(..., 1)``.
        result: "probabilities", "logs", or "" for the conjugate.
        outputs: memory for the result; of the conjugate shifted conjugates, maxima and thresholds.
    """
    form = form_of(alpha, scores.dtype)
    alphas = alpha_of(alpha, scores.shape)
    if result and alphas.each_row and scores.dtype != torch.float64:
        _start(scores, alphas, result, outputs, "flat", form._replace(work=torch.float32))
        _start(scores, alphas, result, outputs, "steep", form)
    else:
        _start(scores, alphas, result, outputs, "all", form)


def _start(
    scores: Tensor, alphas: _Alpha, result: str, outputs: list[Tensor], part: str, form: _Form
) -> None:
    """Start the kernel that solves rows, or the ``part`` of them that `solve_short` describes."""
    n = scores.shape[-1]
    rows = scores.numel() // n
    out = outputs[0] if result else scores
    parts = [scores] * 3 if result else outputs
    given = (scores, out, *parts, *alphas[:3])
    constants = {"each_row": alphas.each_row, "part": part, "result": result, **form.constants}
    short = short_rows(n, form.work)
    if short is not None:
        tiles = _LOOKED_THROUGH if part == "steep" else 1
        grid = (blocks(rows, tiles * short["height"]),)
        triton_kernels.solve_short[grid](*given, rows, n, tiles=tiles, **constants, **short)
        return
    columns = torch.empty(rows, _ROOM, dtype=torch.int32, device=scores.device)
    triton_kernels.solve_long[(rows,)](
        *given, columns, n, **constants, **long_rows(form.work)
    )  # fmt: skip


def long_rows(work: torch.dtype) -> dict[str, int]:
    """Return width, room and warps of a program that solves a long row."""
    return {"width": _TILE // work.itemsize, "room": _ROOM, "num_warps": _warps(_TILE)}


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
    threshold = shifted.new_empty(rows, 1, dtype=form_of(alpha, scores.dtype).work)
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
    form = form_of(alpha, scores.dtype)
    # With a tensor, one alpha for each program of rows.
    each_row = isinstance(alpha, Tensor)
    given = alpha.detach() if isinstance(alpha, Tensor) else alpha_of(alpha, scores.shape).given
    # Above 2 the threshold leaves a sum that is not exactly 1: divide by it.
    above_two = isinstance(alpha, Tensor) or alpha > 2
    unscaled = out.new_empty(out.shape, dtype=_result_type(scores)) if above_two else out
    width = min(max(power_of_two(n), _LEAST_WIDTH), _TILE // form.work.itemsize)
    triton_kernels.write_probabilities[(rows, blocks(n, width))](
        scores, unscaled, maxima.contiguous(), threshold.contiguous(),
        given.contiguous() if isinstance(given, Tensor) else given,
        maxima if factors is None else factors.contiguous(), n,
        each_row=each_row, scaled=factors is not None and not above_two, **form.constants,
        width=width, num_warps=4,
    )  # fmt: skip
    if above_two:
        sums = unscaled.sum(1, keepdim=True)
        if isinstance(alpha, Tensor):
            sums = torch.where(alpha.detach() > 2, sums, 1.0)
        share = 1 / sums if factors is None else factors.unsqueeze(1) / sums
        out.copy_(unscaled.mul_(share))


# PyTorch's operations suffice: losses and searches do not differentiate logarithms.
log_scores_gradient = pytorch.log_scores_gradient


@_or(pytorch.scores_gradient)
def scores_gradient(
    probabilities: Tensor, alpha: float | Tensor, gradient: Tensor, dtype: torch.dtype
) -> Tensor:
    """Return the gradient in the scores; see `Backend.scores_gradient`."""
    probabilities, gradient = probabilities.contiguous(), gradient.contiguous()
    return _gradients(probabilities, alpha, gradient, dtype, None)


def _gradients(
    probabilities: Tensor,
    alpha: float | Tensor,
    gradient: Tensor,
    dtype: torch.dtype,
    alpha_out: Tensor | None,
) -> Tensor:
    """Return the gradient in the scores, and write that in each row's alpha into ``alpha_out``."""
    n = probabilities.shape[-1]
    rows = probabilities.numel() // n
    alphas = alpha_of(alpha, probabilities.shape)
    form = _Form(False, 0, _result_type(probabilities))
    power = 0 if isinstance(alpha, Tensor) or alpha == 1 else whole_power(1 / (alpha - 1))
    out = torch.empty_like(probabilities, dtype=dtype)
    given = (probabilities, gradient, out, *alphas[:3], out if alpha_out is None else alpha_out)
    constants = {
        "each_row": alphas.each_row,
        "power": power,
        "above_two": isinstance(alpha, Tensor) or alpha > 2,
        "of_alpha": alpha_out is not None,
        "work": form.constants["work"],
    }
    short = short_rows(n, form.work)
    if short is not None:
        grid = (blocks(rows, short["height"]),)
        triton_kernels.gradient_short[grid](*given, rows, n, **constants, **short)
    else:
        width = _TILE // form.work.itemsize // 2
        triton_kernels.gradient_long[(rows,)](
            *given, n, **constants, width=width, num_warps=_warps(_TILE)
        )
    return out


@or_none
def gradients(
    probabilities: Tensor, alpha: Tensor, gradient: Tensor, dtype: torch.dtype
) -> tuple[Tensor, Tensor] | None:
    """Return the gradients in the scores ``(..., n)`` and in the alphas ``(..., 1)`` of the rows.

    Args:
        probabilities: ``(..., n)``.
        alpha: ``(..., 1)``.
        gradient: in the probabilities, ``(..., n)``.
        dtype: of the scores.

    Returns:
        The gradient in the scores in their type, that in alpha in float32 or float64; None if the
        kernel fails.
    """
    probabilities, gradient = probabilities.contiguous(), gradient.contiguous()
    in_alpha = probabilities.new_empty(*probabilities.shape[:-1], 1)
    return _gradients(probabilities, alpha, gradient, dtype, in_alpha), in_alpha


class ClassLosses(NamedTuple):
    """Losses of class targets, and what their gradient needs.

    Attributes:
        result: the losses ``(rows,)``, or their sum or mean, 0-dim.
        statistics: ``(3, rows)``: maxima, thresholds, and the weights of rows in the mean.
        divisor: 0-dim, of the mean; None without one.
        weight_sum: 0-dim, of class weights under label smoothing; None without these.
    """

    result: Tensor
    statistics: Tensor
    divisor: Tensor | None
    weight_sum: Tensor | None


class LossOptions(NamedTuple):
    """Options of `entmax_loss` for class targets."""

    alpha: float
    ignore_index: int
    reduction: str
    label_smoothing: float


def covers_losses(scores: Tensor, target: Tensor, weight: Tensor | None, alpha: float) -> bool:
    """Return whether kernels take the loss of class targets in one go: alpha up to 2, no float64.

    Args:
        scores: ``(rows, n)`` that :func:`covers` is true for.
        target: class indices.
        weight: of classes, or None.
        alpha: a number.
    """
    in_memory = has_memory(target) and (weight is None or has_memory(weight))
    return in_memory and alpha <= 2 and scores.dtype != torch.float64


def _loss_arguments(
    scores: Tensor, target: Tensor, weight: Tensor | None, options: LossOptions
) -> tuple[dict[str, object], dict[str, object]]:
    """Return arguments and constants that forward and backward kernels of the loss share."""
    form = form_of(options.alpha, scores.dtype)
    given: dict[str, object] = {
        "scores": scores,
        "target": target,
        "class_weights": scores if weight is None else weight,
        "alpha": alpha_of(options.alpha, scores.shape).given,
        "ignore_index": options.ignore_index,
        "smoothing": float(options.label_smoothing),
        "rows": scores.shape[0],
        "n": scores.shape[1],
    }
    smooth = options.label_smoothing > 0
    return given, {"weighted": weight is not None, "smooth": smooth, **form.constants}


@or_none
def class_losses(
    scores: Tensor,
    target: Tensor,
    weight: Tensor | None,
    options: LossOptions,
    dtype: torch.dtype,
) -> ClassLosses | None:
    """Return losses of class targets; see `entmax_loss`.

    Args:
        scores: ``(rows, n)``, contiguous.
        target: ``(rows,)`` integers, contiguous. One that is no class gives nan.
        weight: ``(n,)`` of the classes, contiguous; or None.
        options: for all rows.
        dtype: of the result.

    Returns:
        The losses, or None if the kernel fails.
    """
    rows, n = scores.shape
    given, constants = _loss_arguments(scores, target, weight, options)
    each = options.reduction == "none"
    statistics = torch.empty(3, rows, dtype=torch.float32, device=scores.device)
    losses = torch.empty(rows, dtype=dtype if each else torch.float32, device=scores.device)
    weight_sum = None
    if weight is not None and options.label_smoothing > 0:
        weight_sum = weight.sum(dtype=torch.float32)
    given.update(losses=losses, statistics=statistics)
    given["weight_sum"] = scores if weight_sum is None else weight_sum
    form = form_of(options.alpha, scores.dtype)
    short = short_rows(n, form.work)
    if short is not None:
        grid = (blocks(rows, short["height"]),)
        triton_kernels.loss_short[grid](**given, **constants, **short)
    else:
        columns = torch.empty(rows, _ROOM, dtype=torch.int32, device=scores.device)
        long = long_rows(form.work)
        triton_kernels.loss_long[(rows,)](**given, columns=columns, **constants, **long)
    if each:
        return ClassLosses(losses, statistics, None, weight_sum)
    result = torch.empty((), dtype=dtype, device=scores.device)
    mean = options.reduction == "mean"
    divisor = torch.empty((), dtype=torch.float32, device=scores.device) if mean else None
    width = min(max(power_of_two(rows), _LEAST_WIDTH), _SUMMED)
    triton_kernels.reduce_losses[(1,)](
        losses, statistics[2], result, result if divisor is None else divisor, rows,
        mean=mean, width=width, num_warps=8,
    )  # fmt: skip
    return ClassLosses(result, statistics, divisor, weight_sum)


@or_none
def class_loss_gradient(
    scores: Tensor,
    target: Tensor,
    weight: Tensor | None,
    options: LossOptions,
    solved: ClassLosses,
    upstream: Tensor,
) -> Tensor | None:
    """Return the gradient of :func:`class_losses` in the scores, in their type.

    Args:
        scores: as before.
        target: as before.
        weight: as before.
        options: as before.
        solved: what :func:`class_losses` returned; its result is not used.
        upstream: the gradient in the result.

    Returns:
        ``(rows, n)``, or None if the kernel fails.
    """
    rows, n = scores.shape
    given, constants = _loss_arguments(scores, target, weight, options)
    each = upstream.dim() > 0 and upstream.stride(0) != 0
    out = torch.empty_like(scores)
    given["weight_sum"] = scores if solved.weight_sum is None else solved.weight_sum
    given.update(statistics=solved.statistics, upstream=upstream.contiguous() if each else upstream)
    given.update(divisor=scores if solved.divisor is None else solved.divisor, out=out)
    width = min(max(power_of_two(n), _LEAST_WIDTH), _TILE // 4)
    height = max(_TOGETHER // width, 1)
    triton_kernels.loss_gradient[(blocks(rows, height), blocks(n, width))](
        **given, each=each, mean=solved.divisor is not None, **constants,
        height=height, width=width, num_warps=_warps(height * width * 4),
    )  # fmt: skip
    return out
