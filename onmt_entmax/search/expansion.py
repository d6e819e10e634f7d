"""From the log-probabilities of a step to candidates: the few tokens that a beam can still care
about."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from onmt_entmax.nn.output import Distribution, Support
from onmt_entmax.search.stepper import SearchError, no_support

# Blocks of a row whose largest entries are looked for first, where there are so many more blocks
# than entries are asked for; entries that are counted at once.
_WIDTH = 64
_BLOCKS = 4
_COUNTED = 1 << 18
# Entries of a support, for each that a beam can need, above which it is sooner looked at as a whole
# row.
_MANY = 16
_ROUNDING = 0.1  # a sum of 16-bit probabilities may come out so far above 1

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


class Expansion(NamedTuple):
    """What may follow each row. Log-probabilities are those of the step alone, at most 0."""

    finish: Floats
    """(rows,) of ending here; -inf where the model excludes it."""
    row: Ints
    """(candidates,) the row that a candidate continues, ascending."""
    token: Ints
    """(candidates,) never `eos`."""
    log_prob: Floats
    """(candidates,)"""
    continuations: Ints
    """(rows,) how many tokens other than `eos` have positive probability, candidates or not."""


def check_columns(distribution: Distribution, vocabulary_size: int) -> None:
    """Refuse a step of other tokens than the vocabulary's.

    Raises:
        SearchError: it gives more or fewer tokens probabilities.
    """
    columns = distribution[1] if isinstance(distribution, Support) else distribution.shape[1]
    if columns != vocabulary_size:
        raise SearchError(
            f"a step gives {columns} tokens probabilities, the vocabulary has {vocabulary_size}"
        )


def expand(distribution: Distribution, eos: int, width: int) -> Expansion:
    """Find what may follow each row: the whole support, or each row's most probable tokens.

    Args:
        distribution: the log-probabilities of the rows; where they are of all tokens, -inf outside
            the support.
        eos: id of the end symbol.
        width: a row's `width` most probable tokens other than `eos` are always among the
            candidates; the rest of its support may be left out.
    """
    rows, vocabulary = distribution[:2] if isinstance(distribution, Support) else distribution.shape
    kept = min(width + 1, vocabulary)  # one more, since `eos` may be one of them
    if isinstance(distribution, Support) and len(distribution.row) > _MANY * rows * kept:
        distribution = distribution.dense()
    if isinstance(distribution, Support):
        row, token = distribution.row.cpu().numpy(), distribution.token.cpu().numpy()
        log_prob = _at_most_one(distribution.log_prob)
        support = np.bincount(row, minlength=rows)
        finish = np.full(rows, -np.inf)
        ends = token == eos
        finish[row[ends]] = log_prob[ends]
    else:
        support = _support_sizes(distribution)
        if int(support.sum()) <= rows * kept:
            index = (distribution != -torch.inf).nonzero()  # a nan is found, and refused below
            row, token = index.cpu().numpy().T
            values = distribution[index[:, 0], index[:, 1]]
        else:
            best, tokens = _largest(distribution, kept)
            row, token = np.repeat(np.arange(rows), kept), tokens.flatten().cpu().numpy()
            values = best.flatten()
        log_prob, finish = _at_most_one(values), _at_most_one(distribution[:, eos])
    wanted = (token != eos) & (log_prob > -np.inf)
    return Expansion(
        finish=finish,
        row=row[wanted],
        token=token[wanted],
        log_prob=log_prob[wanted],
        continuations=support - (finish > -np.inf),
    )


def remove(distribution: Distribution, row: Ints, token: Ints) -> tuple[Distribution, Ints, Floats]:
    """Take tokens out of distributions.

    Args:
        distribution: of rows; may be changed in place.
        row: (pairs,) of a row and
        token: (pairs,) a token, each pair once.

    Returns:
        What is left; of the pairs that had positive probability, their rows and log-probabilities.
    """
    if isinstance(distribution, Support):
        _, vocabulary, *entries = distribution
        keys = (entries[0] * vocabulary + entries[1]).cpu().numpy()
        wanted = row * vocabulary + token
        place = np.searchsorted(keys, wanted)
        inside = np.append(keys, -1)[place] == wanted
        place = place[inside]
        values = _at_most_one(entries[2])[place]
        if len(place):
            left = torch.from_numpy(np.delete(np.arange(len(keys)), place))
            left = left.to(entries[0].device)
            distribution = distribution._replace(
                row=entries[0][left], token=entries[1][left], log_prob=entries[2][left]
            )
        return distribution, row[inside], values
    index = torch.from_numpy(row), torch.from_numpy(token)
    values = _at_most_one(distribution[index])
    inside = values > -np.inf
    if inside.any():
        distribution[index] = -torch.inf
    return distribution, row[inside], values[inside]


def _at_most_one(log_prob: Tensor) -> Floats:
    """In float64, and cut: rounding can lift a certain token to slightly more than probability one,
    but a probability never grows along a string.

    Raises:
        SearchError: one is nan, which is not the same as impossible, or more than rounding above 0.
    """
    values = log_prob.double().cpu().numpy()
    if np.isnan(values).any():
        raise no_support()
    if values.max(initial=-np.inf) > _ROUNDING:
        raise SearchError(
            f"the model gives a token the log-probability {values.max():.3g}: none is above 0 "
            "(a step must return natural logarithms of probabilities, not scores)"
        )
    return np.minimum(values, 0.0)


def _support_sizes(log_probs: Tensor) -> Ints:
    """How many entries of each row (rows, vocabulary) are not -inf.

    As a sum of numbers in cached memory, which takes a tenth of the time of one of booleans.
    """
    sizes = [
        torch.ne(part, -torch.inf, out=torch.empty_like(part)).sum(1)
        for part in log_probs.split(max(1, _COUNTED // log_probs.shape[1]))
    ]
    return torch.cat(sizes).long().cpu().numpy()


def _largest(log_probs: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The largest entries of each row (rows, vocabulary), and their places: both (rows, count).

    They lie in the blocks with the largest maxima, or behind the last block.
    """
    vocabulary = log_probs.shape[1]
    blocks = vocabulary // _WIDTH
    if blocks < _BLOCKS * count:
        return log_probs.topk(count, dim=1)
    inside, rest = log_probs.split([blocks * _WIDTH, vocabulary - blocks * _WIDTH], 1)
    chosen = inside.unflatten(1, (blocks, _WIDTH)).amax(2).topk(count, dim=1)[1]
    column = torch.arange(vocabulary, device=log_probs.device)
    places = torch.cat(
        [
            (chosen.unsqueeze(2) * _WIDTH + column[:_WIDTH]).flatten(1),
            column[blocks * _WIDTH :].expand(rest.shape),
        ],
        1,
    )
    best, found = log_probs.gather(1, places).topk(count, dim=1)
    return best, places.gather(1, found)


def rank_within(group: Ints, score: Floats) -> tuple[Ints, Ints]:
    """Order items by group, within a group by score, best first; ties keep their order.

    Args:
        group: (n,) group numbers.
        score: (n,)

    Returns:
        The order (n,), and the rank of each item in that order within its group (n,), from 0.
    """
    order = np.lexsort((-score, group))
    ordered = group[order]
    first = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]][: len(ordered)])
    sizes = np.diff(np.append(first, len(ordered)))
    return order, np.arange(len(ordered)) - np.repeat(first, sizes)


def largest_within(group: Ints, score: Floats, groups: int) -> Floats:
    """The largest score of each group (groups,); -inf for an empty group."""
    largest = np.full(groups, -np.inf)
    np.maximum.at(largest, group, score)
    return largest
