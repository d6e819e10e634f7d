r"""The few scores of a long row that can be in the support, found in one pass and without a sort.

The threshold of a part of a row is never above the threshold of the whole row, since every further
score adds probability. So the threshold of the block maxima, or any lower bound of it such as a few
Newton steps give, is a lower bound for the row; what lies under it has probability 0 for certain.
Blocks whose maximum lies above are looked into, and what is left is compacted to a narrow matrix
that the ordinary methods solve.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from onmt_entmax.mappings.threshold import newton_step

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
