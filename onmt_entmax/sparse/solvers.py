r"""Where a row of scores is cut: the threshold of entmax, found without sorting.

With :math:`\beta = \alpha - 1` and scores :math:`x = z - \max z`, entmax is

.. math:: p_i = (\beta [x_i - t]_+)^{1/\beta}, \qquad \sum_i p_i = 1, \qquad -1/\beta \le t < 0

(Peters, Niculae and Martins 2019, equation 13, with its threshold :math:`\tau = \beta t`). For
:math:`1 < \alpha \le 2` the condition is on a norm of order :math:`q = 1 / \beta \ge 1`:
:math:`\lVert [x - t]_+ \rVert_q = q`. That norm is convex and falls with :math:`t`, so Newton's
method from any lower bound climbs to the threshold and never passes it: every iterate is a lower
bound too, and can only enlarge the support. On equal scores, and with one score in the support, a
single step is exact; ordinary rows take three to six.

Two forms of the same curve are used. The *power form* is the one above, in the type of the scores,
for a fixed alpha in [1.1, 2]. Nearer to 1 the power magnifies rounding, and above 2 it is not a
norm; there, and where every row has an alpha of its own, the *log form* works on ``log p`` in
float64:

.. math:: \log p_i = \log(1 + \beta (x_i - s)) / \beta, \qquad s = t + 1 / \beta

whose limit at :math:`\alpha = 1` is softmax with ``s = logsumexp(x)``.
"""

import math
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

SMALLEST_POWER_ALPHA = 1.1
# Up to this whole exponent, powers are products. Where the search for a threshold starts, as a part
# of the largest score's lead over the least threshold possible.
_MOST_PRODUCTS = 10
_GUESS = -0.75
_ITERATIONS = 100
# From this length on a row's mean and deviation tell where to start.
_MANY = 512
# The least logarithm in the table of normal thresholds, and how many there are in a unit.
_LEAST_LOG = -2.6
_PLACES = 32
_EPSILON = {dtype: torch.finfo(dtype).eps for dtype in (torch.float32, torch.float64)}


class PowerForm(NamedTuple):
    """Rows solved in the power form.

    Attributes:
        maxima: the largest score of each row, the shape of the scores with size 1 in the last
            place.
        threshold: ``t`` in [-1 / beta, 0), the shape of ``maxima``.
        margin: ``[x - t]_+``, the shape of the scores; positive exactly on the support.
        below: ``x``, the shape of the scores; its memory may be used again.
    """

    maxima: Tensor
    threshold: Tensor
    margin: Tensor
    below: Tensor


class LogForm(NamedTuple):
    """Rows solved in the log form, in float64.

    Attributes:
        maxima: the largest score of each row, the shape of the scores with size 1 in the last
            place.
        shift: ``s`` in [0, log n], the shape of ``maxima``.
        log_probabilities: the shape of the scores; -inf exactly outside the support.
    """

    maxima: Tensor
    shift: Tensor
    log_probabilities: Tensor


def has_power_form(alpha: float | Tensor) -> bool:
    """Whether alpha is one number, and the power form as exact for it as the scores' type."""
    return not isinstance(alpha, Tensor) and SMALLEST_POWER_ALPHA <= alpha <= 2


def wide(scores: Tensor) -> Tensor:
    """Scores in float32 at least, which PyTorch's operations need where a kernel does not."""
    return scores if scores.dtype.itemsize >= 4 else scores.float()


def refuse_rows_without_answer(maxima: Tensor) -> None:
    """Raise ValueError if the largest score of a row is -inf."""
    if bool(torch.isneginf(maxima).any()):
        raise ValueError(
            "a row of scores is -inf everywhere and has no probabilities; leave at least one finite"
        )


def whole_power(exponent: float) -> int:
    """The whole number that an exponent is, if products are to make it; otherwise 0.

    Whole is what differs by the rounding of alpha only.
    """
    whole = round(exponent)
    exact = abs(exponent - whole) <= 3e-16 * whole**2
    return whole if exact and 1 <= whole <= _MOST_PRODUCTS else 0


def raised(base: Tensor, exponent: float, out: Tensor) -> Tensor:
    """``base ** exponent`` into ``out``, which is not ``base``; products for whole exponents.

    A product costs a twentieth of a power.
    """
    whole = whole_power(exponent)
    if whole < 2:
        return torch.pow(base, exponent, out=out)
    torch.mul(base, base, out=out)
    for place, bit in enumerate(f"{whole:b}"[1:]):
        if place:
            out.mul_(out)
        if bit == "1":
            out.mul_(base)
    return out


def power(margin: Tensor, beta: float, out: Tensor) -> Tensor:
    """Probabilities ``(beta * margin) ** (1 / beta)`` into ``out``, overwriting the margins."""
    if beta == 1.0:
        return out.copy_(margin)
    return raised(margin.mul_(beta), 1 / beta, out)


def newton_step(
    margin: Tensor, order: float, level: float | Tensor, scratch: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """One Newton step towards the threshold at which the norm of the margins is ``level``.

    Args:
        margin: (..., n).
        order: of the norm; ``1 / beta`` for the threshold of entmax, as is ``level``.
        level: the norm that is wanted.
        scratch: as large as ``margin``; overwritten unless the order is 2.

    Returns:
        The norm, and numerator and denominator of how far to raise the threshold; all (..., 1).
    """
    if order == 2:
        norm = torch.linalg.vector_norm(margin, 2, -1, True)
        return norm, (norm - level).mul_(norm), margin.sum(-1, True)
    if order == 1:
        norm = margin.sum(-1, True)
        return norm, norm - level, torch.sign(margin, out=scratch).sum(-1, True)
    slope = raised(margin, order - 1, scratch).sum(-1, True)
    total = scratch.mul_(margin).sum(-1, True)
    norm = total.pow(1 / order)
    return norm, (norm - level).mul_(total.pow_(1 - 1 / order)), slope


def solve_power(
    scores: Tensor, alpha: float, start: Tensor | None = None, maxima: Tensor | None = None
) -> PowerForm:
    """Threshold of each row by Newton's method on the whole row.

    For alpha = 1.5 the norm bends by at most n / 2, so that a step ``d`` leaves an excess of at
    most ``n d**2 / 4``: once that is below rounding, no further look is needed.

    Args:
        scores: (..., n) with n >= 1, float32 or float64.
        alpha: a number in [1.1, 2].
        start: lower bounds of the thresholds (..., 1); by default any guess will do, since the
            first step from anywhere ends below the threshold.
        maxima: the largest score of each row (..., 1), if they are known.

    Raises:
        ValueError: if a row is -inf everywhere.
    """
    beta = alpha - 1.0
    order = 1 / beta
    maxima = scores.amax(-1, True) if maxima is None else maxima
    below = scores - maxima
    level = _number(order, scores.dtype, scores.device)
    threshold = _number(_GUESS * order, scores.dtype, scores.device) if start is None else start
    if start is None and order == 2 and scores.shape[-1] >= _MANY:
        threshold = _normal_guess(below)
    margin = (below - threshold).relu_()
    scratch = margin if order == 2 else torch.empty_like(margin)
    enough, previous = (1 + 2 * _EPSILON[scores.dtype]) * order, math.inf
    short = 4 * math.sqrt(_EPSILON[scores.dtype] / scores.shape[-1]) if order == 2 else 0.0
    for iteration in range(_ITERATIONS):
        norm, rise, slope = newton_step(margin, order, level, scratch)
        # Ordinary rows need three steps, or one from a bound; looking costs half a small step.
        if iteration >= (3 if start is None else 1):
            largest = float(norm.amax())
            if largest != largest:
                refuse_rows_without_answer(maxima)
                largest = float(norm.nan_to_num(0.0).amax())
            # The norm falls at every step until rounding stops it.
            if largest <= enough or largest >= previous:
                break
            previous = largest
        step = rise.div_(slope)
        looking = short > 0 and iteration >= (2 if start is None else 1)
        last = looking and float(step.amax()) <= short
        threshold = threshold.add_(step) if iteration else step.add_(threshold)
        torch.sub(below, threshold, out=margin).relu_()
        if last:
            break
    return PowerForm(maxima, threshold, margin, below)


def _normal_guess(below: Tensor) -> Tensor:
    """Where to start for 1.5-entmax of scores (..., n) with maximum 0; (..., 1) in [-1.5, 0).

    The threshold of as many normal scores of the row's mean and deviation, where it would leave a
    large part of them in the support, as nearly equal scores do; elsewhere the usual guess.
    """
    n = below.shape[-1]
    mean = below.sum(-1, True).div_(n)
    variance = torch.linalg.vector_norm(below, 2, -1, True).square_().div_(n)
    variance = variance.addcmul_(mean, mean, value=-1).relu_()
    table = _normal_thresholds(below.dtype, below.device)
    place = (4 / n / variance).log_().sub_(_LEAST_LOG).mul_(_PLACES)
    place = place.nan_to_num_(0.0).clamp_(0, len(table) - 1)
    start = variance.sqrt_().mul_(table[place.long()]).add_(mean)
    # With nan, as scores of -inf make it, the guess. The largest score stays in the support.
    guess = _number(2 * _GUESS, below.dtype, below.device)
    return torch.fmax(start, guess).clamp_max_(-2 / math.sqrt(n))


@cache
def _normal_thresholds(dtype: torch.dtype, device: torch.device) -> Tensor:
    """Thresholds ``t`` at which a standard normal ``x`` has ``log E [x - t]_+ ** 2`` as listed.

    Listed are ``_PLACES`` logarithms in each unit from ``_LEAST_LOG``, where t is 1, to that of
    t = -6; the first threshold, which stands for all that are above 1, is -inf.
    """
    t = torch.linspace(1.1, -6.0, 4096, dtype=torch.float64)
    tail, density = 0.5 * torch.erfc(t / math.sqrt(2)), torch.exp(-t * t / 2) / math.sqrt(math.tau)
    logs = ((1 + t * t) * tail - t * density).log()
    listed = torch.arange(_LEAST_LOG, float(logs[-1]), 1 / _PLACES, dtype=torch.float64)
    table = t[torch.searchsorted(logs, listed)]
    table[0] = -math.inf
    return table.to(device, dtype)


@cache
def _number(value: float, dtype: torch.dtype, device: torch.device) -> Tensor:
    """A cached 0-dim tensor: operations start faster with it than with a Python number."""
    return torch.tensor(value, dtype=dtype, device=device)


def sorted_margin(scores: Tensor) -> Tensor:
    """Margins of 1.5-entmax (..., n), as in :class:`PowerForm`, for few scores.

    The threshold of the k largest alone is the lower root of ``sum (x - t) ** 2 = 4``: below the
    k-th of them, and growing, as long as that is in the support; above it from there on (Peters,
    Niculae and Martins 2019, proposition 3). So few scores are sorted in less time than Newton's
    method needs to start.

    Args:
        scores: (..., n) with n >= 1, float32 or float64.

    Raises:
        ValueError: if a row is -inf everywhere.
    """
    n = scores.shape[-1]
    ordered = scores.topk(n)[0]
    maxima = ordered[..., :1]
    if not float(maxima.amin()) > -math.inf:
        refuse_rows_without_answer(maxima)
    below = ordered - maxima
    count, fourfold = _counts(n, scores.dtype, scores.device)
    total, squares = below.cumsum(-1), (below * below).cumsum(-1)
    spread = torch.addcmul(fourfold, count, squares, value=-1).addcmul_(total, total).relu_()
    # Among scores of -inf, where the root is nan, the score is taken.
    lowest = torch.fmin(total.sub_(spread.sqrt_()).div_(count), below)
    return (scores - maxima).sub_(lowest.amax(-1, True)).relu_()


@cache
def _counts(n: int, dtype: torch.dtype, device: torch.device) -> tuple[Tensor, Tensor]:
    """The numbers 1 to n, and their fourfold."""
    count = torch.arange(1, n + 1, dtype=dtype, device=device)
    return count, 4 * count


def log_curve(below: Tensor, alpha: float | Tensor) -> Tensor:
    """``log(1 + beta y) / beta`` of ``y = below``, -inf where there is none; y at alpha 1."""
    beta = torch.as_tensor(alpha, dtype=below.dtype, device=below.device) - 1
    curved = (beta * below).clamp_min_(-1.0).log1p_().div_(beta)
    return torch.where(beta == 0, below, curved)


def solve_log(scores: Tensor, alpha: float | Tensor) -> LogForm:
    """Threshold of each row in float64, for any alpha >= 1; bisection where alpha is above 2.

    Args:
        scores: (..., n) with n >= 1.
        alpha: a number, or (..., 1), one for each row.

    Raises:
        ValueError: if a row is -inf everywhere.
    """
    scores = scores.double()
    beta = torch.as_tensor(alpha, dtype=torch.float64, device=scores.device) - 1
    maxima = scores.amax(-1, True)
    below_max = scores - maxima
    low = torch.zeros_like(maxima)
    # Equal scores need the largest shift of all: log n, bent by alpha.
    high = -_expm1_over(beta, torch.full_like(maxima, -math.log(scores.shape[-1])))
    shift, bisect = low, (beta > 1).expand_as(low)
    enough = 1 + 4 * torch.finfo(torch.float64).eps
    for _ in range(_ITERATIONS):
        logs = log_curve(below_max - shift, beta + 1)
        total = logs.exp().sum(-1, keepdim=True)
        low, high = torch.where(total >= 1, shift, low), torch.where(total < 1, shift, high)
        broken = total.isnan()
        if bool(broken.any()):
            refuse_rows_without_answer(maxima)
        settled = torch.where(bisect, high - low <= 2e-16 * high, total <= enough)
        if bool((settled | broken).all()):
            break
        slope = torch.exp((1 - beta) * logs).nan_to_num_(0.0, 0.0, 0.0).sum(-1, keepdim=True)
        step = -total * _expm1_over(beta, -total.log()) / slope
        shift = torch.where(bisect, (low + high) / 2, shift + step)
    if bool(bisect.any()):
        # The lower end keeps the whole support.
        shift = torch.where(bisect, low, shift)
        logs = torch.where(bisect, steep_logs(below_max, beta, shift), logs)
    return LogForm(maxima, shift, logs)


def steep_logs(below: Tensor, beta: Tensor, shift: Tensor) -> Tensor:
    """Log-probabilities where alpha is above 2, from a lower bound next to the threshold.

    There the curve is infinitely steep at the threshold: the best number for that still leaves the
    smallest probabilities open. So the unknown is the smallest one, ``v`` of the score ``x_k``:
    the others are ``(beta (x_i - x_k) + v ** beta) ** (1 / beta)``. Their sum is a norm of each
    two terms, hence convex in v and growing, and Newton's method comes down to 1 from above.

    Args:
        below: scores under the largest one, (..., n) in float64.
        beta: alpha - 1, broadcasting; where it is not above 1 the result means nothing.
        shift: (..., 1), as in :class:`LogForm`.
    """
    beta = torch.where(beta > 1, beta, 2.0)
    inside = 1 + beta * (below - shift) > 0
    while True:
        least = torch.where(inside, below, math.inf).amin(-1, keepdim=True)
        lead = torch.where(inside, beta * (below - least), 0.0)
        # With more than 1 above it, the smallest score is not in the support after all.
        over = lead.pow(1 / beta).sum(-1, keepdim=True) >= 1
        if not bool(over.any()):
            break
        inside &= ~(over & (below == least))
    first = inside & (lead == 0)
    v = 1 / inside.sum(-1, keepdim=True).to(below.dtype)
    for _ in range(_ITERATIONS):
        p = torch.where(first, v, (lead + v**beta) ** (1 / beta)) * inside
        slope = torch.where(first, 1.0, (v / p) ** (beta - 1)).nan_to_num_(0.0) * inside
        step = (p.sum(-1, keepdim=True) - 1) / slope.sum(-1, keepdim=True)
        following = torch.minimum(v - step, v).clamp_min_(0.0)
        if bool((following == v).all()):
            break
        v = following
    logs = torch.where(first, v.log(), torch.log(lead + v**beta) / beta)
    logs = torch.where(inside, logs, -math.inf)
    return torch.where(below.isnan().any(-1, keepdim=True), math.nan, logs)


def _expm1_over(beta: Tensor, factor: Tensor) -> Tensor:
    """``expm1(beta * factor) / beta``, and its limit ``factor`` where beta is 0."""
    return torch.where(beta == 0, factor, torch.expm1(beta * factor) / beta)


# The few scores of a long row that can be in the support, found in one pass and without a sort.
#
# The threshold of a part of a row is never above the threshold of the whole row, since every further
# score adds probability. So the threshold of the block maxima, or any lower bound of it such as a few
# Newton steps give, is a lower bound for the row; what lies under it has probability 0 for certain.
# Blocks whose maximum lies above are looked into, and what is left is compacted to a narrow matrix
# that the ordinary methods solve.

# Contiguous blocks of this width are reduced at the speed of memory; many other widths are not.
_WIDTH = 64
_LONG = 4096
MEDIUM = 512
_SLICES = 8
_STEPS = 3
# Rounding in the steps must not carry the bound over the threshold; rounding of alpha.
_SLACK = 32
_ROUNDING = 1e-13
# Parts of the whole above which another way is faster: blocks to look into, than to compare all
# scores; blocks, and then candidates, above which nothing is gained by candidates.
_MOST_BLOCKS = 0.3
_MOST_BLOCKS_WHOLE = 0.95
_MOST_CANDIDATES = 0.20
# The same for blocks of rows of medium length, which are then searched whole.
_MOST_SLICES = 0.5
# So many rows of medium length are asked first whether to search the others. With this as length
# times variance, a sixth of normal scores is in the support: 4 / E [x - 1]_+ ** 2.
_SAMPLE = 16
_NARROW = 53.0
_INT32 = 2**31 - 1
# Scores that are compared at once.
_COMPARED = 1 << 22


class Candidates(NamedTuple):
    """Scores that may be in the support of their rows, every other score being outside it.

    Attributes:
        scores: (rows, width) the candidates of each row, filled up with -inf.
        position: (k,) int64, where each candidate lies in the flattened whole scores; ascending.
        slot: (k,) int64, where it lies in the flattened ``scores``.
        row: (k,) int64, its row.
    """

    scores: Tensor
    position: Tensor
    slot: Tensor
    row: Tensor


def lower_bound(scores: Tensor, alpha: float) -> tuple[Tensor, Tensor, Tensor] | None:
    """Lower bounds of the thresholds of rows of medium or greater length, from block maxima.

    Args:
        scores: (rows, n) float32 or float64, contiguous.
        alpha: a number > 1; above 2 the bound is the trivial one, -1 / (alpha - 1).

    Returns:
        The block maxima (rows, blocks), the row maxima (rows, 1) and the bounds (rows, 1); or None
        if the rows are short, or a row has a maximum that is not finite.
    """
    n = scores.shape[1]
    if n < MEDIUM:
        return None
    if n >= _LONG:
        blocks, dim = scores[:, : n // _WIDTH * _WIDTH].unflatten(1, (-1, _WIDTH)), 2
    else:
        blocks, dim = scores[:, : n // _SLICES * _SLICES].unflatten(1, (_SLICES, -1)), 1
    block_maxima = blocks.amax(dim)
    rest = n - blocks.shape[1] * blocks.shape[2]
    if rest:
        block_maxima = torch.cat([block_maxima, scores[:, -rest:].amax(1, True)], 1)
    maxima = block_maxima.amax(1, True)
    if not bool(maxima.isfinite().all()):
        return None
    level = 1 / (alpha - 1)
    bound = torch.full_like(maxima, -level)
    if alpha <= 2:
        # Margins are at most the level, so a higher order makes the norm smaller, which is safe:
        # a whole one needs no powers.
        order = math.ceil(level - _ROUNDING)
        below = block_maxima - maxima
        margin, scratch = torch.empty_like(below), torch.empty_like(below)
        for _ in range(_STEPS):
            torch.sub(below, bound, out=margin).relu_()
            _, rise, slope = newton_step(margin, order, level, scratch)
            bound.addcdiv_(rise, slope)
        bound -= _SLACK * torch.finfo(scores.dtype).eps * level
    return block_maxima, maxima, bound


def nearly_equal(scores: Tensor) -> bool:
    """Whether a few rows of medium length say that 1.5-entmax keeps too many to search for them."""
    n = scores.shape[1]
    return MEDIUM <= n < _LONG and float(scores[:_SAMPLE].var(1).amax()) * n <= _NARROW


def select(
    scores: Tensor, block_maxima: Tensor, maxima: Tensor, bound: Tensor
) -> Candidates | None:
    """Candidates of long rows above the bounds of :func:`lower_bound`; None if they are many.

    Args:
        scores: (rows, n) contiguous.
        block_maxima: (rows, blocks).
        maxima: (rows, 1).
        bound: (rows, 1).
    """
    rows, n = scores.shape
    # The next smaller number, so that rounding to the size of the scores excludes nothing.
    cut = torch.nextafter(maxima + bound, maxima.new_tensor(-torch.inf))
    is_hot = above(block_maxima, cut)
    part = int(is_hot.count_nonzero()) / is_hot.numel()
    if part > (_MOST_BLOCKS_WHOLE if n >= _LONG else _MOST_SLICES):
        return None
    if n >= _LONG and part <= _MOST_BLOCKS:
        hot = nonzero(is_hot)
        position, row, values = _inside_blocks(scores, hot, block_maxima.shape[1], cut)
    else:
        step = max(_COMPARED // n, 1)
        position = torch.cat(
            [
                nonzero(above(scores[first : first + step], cut[first : first + step])) + first * n
                for first in range(0, rows, step)
            ]
        )
        row, values = position // n, scores.view(-1).index_select(0, position)
    counts = torch.bincount(row, minlength=rows)
    width = int(counts.max())
    if width > _MOST_CANDIDATES * n:
        return None
    slot = torch.arange(len(row), device=scores.device) - (counts.cumsum(0) - counts)[row]
    slot += row * width
    compact = scores.new_full((rows, width), -torch.inf)
    compact.view(-1).scatter_(0, slot, values)
    return Candidates(compact, position, slot, row)


def _inside_blocks(
    scores: Tensor, hot: Tensor, blocks: int, cut: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Position, row and score of what lies above ``cut`` (rows, 1) in some of a row's blocks."""
    n = scores.shape[1]
    row = hot // blocks
    column = (hot - row * blocks) * _WIDTH
    # The last block may overlap the one before it: blocks are read through a window of their width.
    start = column.clamp_max(n - _WIDTH)
    begin = row * n + start
    windows = scores.as_strided((scores.numel() - _WIDTH + 1, _WIDTH), (1, 1))
    inside = windows.index_select(0, begin if scores.numel() > _INT32 else begin.int())
    if n % _WIDTH:
        # What the window before has too is not to be found twice.
        inside[(start < column).nonzero().squeeze(1), : -(n % _WIDTH)] = -torch.inf
    found = nonzero(above(inside, cut.index_select(0, row)))
    block = found // _WIDTH
    position = begin.index_select(0, block) + (found - block * _WIDTH)
    return position, row.index_select(0, block), inside.view(-1).index_select(0, found)


def above(scores: Tensor, cut: Tensor) -> Tensor:
    """Mask of the scores (rows, n) that are larger than ``cut`` (rows, 1).

    Numbers are compared to numbers, and these made booleans: several times faster than at once.
    """
    return torch.gt(scores, cut, out=torch.empty_like(scores)).to(torch.bool)


def nonzero(mask: Tensor) -> Tensor:
    """Positions (k,) of what is true in a flattened mask, ascending.

    Eight booleans are looked at as one integer first: several times faster when few are true.
    """
    flat = mask.flatten()
    if flat.numel() % 8:
        return flat.nonzero().squeeze(1)
    packed = flat.view(torch.int64)
    eights = packed.nonzero().squeeze(1)
    inner = packed.index_select(0, eights).view(torch.bool).nonzero().squeeze(1)
    return eights.index_select(0, inner >> 3).mul_(8).add_(inner & 7)
