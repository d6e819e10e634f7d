"""TEMPORARY, for modules of `nn`: the search for candidates: scores that may be in the support of long rows, in one pass.

The threshold of a part of a row is never above that of the whole row, since every further score
adds probability. So a lower bound of the threshold of the block maxima is one of the row's; scores
below it have probability 0. Blocks with a maximum above it are searched, and their candidates are
gathered in a narrow matrix, without a sort.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from onmt_entmax.sparse.solvers import SLACK, newton_step

# Contiguous blocks of this width are reduced at the speed of memory; most other widths are not.
_WIDTH = 64
# Rows of at least this length have such blocks; those of medium length are cut in a few slices.
_LONG = 4096
MEDIUM = 512
_SLICES = 8
_STEPS = 3
# The rounding of alpha.
_ROUNDING = 1e-13
# Parts above which another way is faster: blocks to search, against comparing all scores; blocks,
# and then candidates, against solving the whole row.
_MOST_BLOCKS = 0.3
_MOST_BLOCKS_WHOLE = 0.95
_MOST_CANDIDATES = 0.20
# Likewise for the blocks of rows of medium length.
_MOST_SLICES = 0.5
_INT32 = 2**31 - 1
# Scores that are compared at once.
_COMPARED = 1 << 22


class Candidates(NamedTuple):
    """Scores that may be in the support of their rows; all others are outside.

    Attributes:
        scores: ``(rows, width)`` the candidates of each row, padded with -inf.
        position: ``(candidates,)`` int64, ascending positions in the flattened original scores.
        slot: ``(candidates,)`` int64, positions in the flattened ``scores``.
        row: ``(candidates,)`` int64.
    """

    scores: Tensor
    position: Tensor
    slot: Tensor
    row: Tensor


def lower_bound(scores: Tensor, alpha: float) -> tuple[Tensor, Tensor, Tensor] | None:
    """Return lower bounds of the thresholds of rows, from block maxima.

    Args:
        scores: ``(rows, n)`` float32 or float64, contiguous.
        alpha: a number > 1; above 2 the bound is the least threshold possible, -1 / (alpha - 1).

    Returns:
        The block maxima ``(rows, blocks)``, the row maxima ``(rows, 1)`` and the bounds
        ``(rows, 1)``; or None if the rows are short or a maximum is not finite.
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
        # A whole order needs products only. Margins are at most the level, so that a higher order
        # makes the norm smaller, and the bound is still a lower one.
        order = math.ceil(level - _ROUNDING)
        below = block_maxima - maxima
        margin, scratch = torch.empty_like(below), torch.empty_like(below)
        for _ in range(_STEPS):
            torch.sub(below, bound, out=margin).relu_()
            _, rise, slope = newton_step(margin, order, level, scratch)
            bound.addcdiv_(rise, slope)
        bound -= SLACK * torch.finfo(scores.dtype).eps * level
    return block_maxima, maxima, bound


def select(
    scores: Tensor, block_maxima: Tensor, maxima: Tensor, bound: Tensor
) -> Candidates | None:
    """Return the candidates above the bounds of :func:`lower_bound`; None if they are many.

    Args:
        scores: ``(rows, n)``, contiguous.
        block_maxima: ``(rows, blocks)``.
        maxima: ``(rows, 1)``.
        bound: ``(rows, 1)``.
    """
    rows, n = scores.shape
    # The next smaller number, so that rounding excludes nothing.
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
    """Return positions, rows and values of the scores above ``cut`` in the blocks ``hot``."""
    n = scores.shape[1]
    row = hot // blocks
    column = (hot - row * blocks) * _WIDTH
    # The last block may be shorter; a window of full width then overlaps the one before.
    start = column.clamp_max(n - _WIDTH)
    begin = row * n + start
    windows = scores.as_strided((scores.numel() - _WIDTH + 1, _WIDTH), (1, 1))
    inside = windows.index_select(0, begin if scores.numel() > _INT32 else begin.int())
    if n % _WIDTH:
        # Scores of the overlap must not be found twice.
        inside[(start < column).nonzero().squeeze(1), : -(n % _WIDTH)] = -torch.inf
    found = nonzero(above(inside, cut.index_select(0, row)))
    block = found // _WIDTH
    position = begin.index_select(0, block) + (found - block * _WIDTH)
    return position, row.index_select(0, block), inside.view(-1).index_select(0, found)


def above(scores: Tensor, cut: Tensor) -> Tensor:
    """Return a mask of the scores ``(rows, n)`` above ``cut`` ``(rows, 1)``.

    Comparing into floats and converting these to booleans is several times faster than at once.
    """
    return torch.gt(scores, cut, out=torch.empty_like(scores)).to(torch.bool)


def nonzero(mask: Tensor) -> Tensor:
    """Return the ascending positions of the true values in a flattened mask.

    Eight booleans are compared as one integer first, several times faster when few are true.
    """
    flat = mask.flatten()
    if flat.numel() % 8:
        return flat.nonzero().squeeze(1)
    packed = flat.view(torch.int64)
    eights = packed.nonzero().squeeze(1)
    inner = packed.index_select(0, eights).view(torch.bool).nonzero().squeeze(1)
    return eights.index_select(0, inner >> 3).mul_(8).add_(inner & 7)
