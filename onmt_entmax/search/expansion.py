"""Select the candidates for a beam from the log-probabilities of one step."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from onmt_entmax.nn.support import Distribution, Support
from onmt_entmax.search.stepper import SearchError, no_support

_BLOCK = 64  # entries of a row whose maximum is taken first in a top-k
_LEAST_BLOCKS = 4  # blocks a row must have, for each entry wanted, for that to pay
_COUNTED = 1 << 18  # entries counted at once, which fit the cache
_DENSE_ABOVE = 16  # entries of a support, for each that a beam needs, above which rows are dense
_ROUNDING = 0.1  # how far a sum of 16-bit probabilities may exceed 1

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


class Expansion(NamedTuple):
    """The tokens that may follow each row; log-probabilities are those of the step, at most 0."""

    finish: Floats
    """`(rows,)` log-probability of ending here; -inf where the model excludes it"""
    row: Ints
    """`(candidates,)` row that each candidate continues, ascending"""
    token: Ints
    """`(candidates,)`, never `eos`"""
    log_prob: Floats
    """`(candidates,)`"""
    continuations: Ints
    """`(rows,)` tokens other than `eos` of positive probability, candidates or not"""


def check_columns(distribution: Distribution, vocabulary_size: int) -> None:
    """Check that a step gives every token of the vocabulary a probability.

    Raises:
        SearchError: if it gives more or fewer tokens one.
    """
    columns = distribution[1] if isinstance(distribution, Support) else distribution.shape[1]
    if columns != vocabulary_size:
        raise SearchError(
            f"a step gives probabilities of size {columns}, the vocabulary has {vocabulary_size}"
        )


def expand(distribution: Distribution, eos: int, width: int) -> Expansion:
    """Return the whole support of each row, or its most probable tokens.

    Args:
        distribution: log-probabilities of the rows: of all tokens, -inf outside the support, or of
            the support alone.
        eos: id of the end symbol.
        width: a row's `width` most probable tokens other than `eos` are always among the
            candidates; the rest of its support may be left out.

    Raises:
        SearchError: if a value is nan or no log-probability.
    """
    rows, vocabulary = distribution[:2] if isinstance(distribution, Support) else distribution.shape
    kept = min(width + 1, vocabulary)  # one more, since `eos` may be one of them
    if isinstance(distribution, Support) and len(distribution.row) > _DENSE_ABOVE * rows * kept:
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
            index = (distribution != -torch.inf).nonzero()  # nan is found too, and refused below
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
    """Remove tokens from distributions.

    Args:
        distribution: of the rows; may be changed in place.
        row: `(pairs,)` row of each pair.
        token: `(pairs,)` token of each pair; no pair twice.

    Returns:
        The distribution without them; row and log-probability of each pair that had positive
        probability.
    """
    if isinstance(distribution, Support):
        place, inside = _entries(distribution, row, token)
        values = _at_most_one(distribution.log_prob)[place]
        if len(place):
            left = torch.from_numpy(np.delete(np.arange(len(distribution.row)), place))
            left = left.to(distribution.row.device)
            distribution = distribution._replace(
                row=distribution.row[left],
                token=distribution.token[left],
                log_prob=distribution.log_prob[left],
            )
        return distribution, row[inside], values
    index = torch.from_numpy(row), torch.from_numpy(token)
    values = _at_most_one(distribution[index])
    inside = values > -np.inf
    if inside.any():
        distribution[index] = -torch.inf
    return distribution, row[inside], values[inside]


def look_up(distribution: Distribution, row: Ints, token: Ints) -> Floats:
    """Return the log-probability `(pairs,)` of pairs of a row and a token."""
    if not isinstance(distribution, Support):
        return _at_most_one(distribution[torch.from_numpy(row), torch.from_numpy(token)])
    place, inside = _entries(distribution, row, token)
    values = np.full(len(row), -np.inf)
    values[inside] = _at_most_one(distribution.log_prob)[place]
    return values


def _entries(support: Support, row: Ints, token: Ints) -> tuple[Ints, Flags]:
    """Find pairs `(pairs,)` of a row and a token among the entries of a support.

    Returns:
        The places of those that are there, and `(pairs,)` which are.
    """
    keys = (support.row * support.vocabulary + support.token).cpu().numpy()
    wanted = row * support.vocabulary + token
    place = np.searchsorted(keys, wanted)
    inside = np.append(keys, -1)[place] == wanted
    return place[inside], inside


def _at_most_one(log_prob: Tensor) -> Floats:
    """Return log-probabilities in float64, clipped to 0.

    Rounding can lift a certain token slightly above probability 1, and certificates rely on
    probabilities that never grow along a sequence.

    Raises:
        SearchError: if one is nan, or above 0 by more than rounding.
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
    """Return how many entries of each row `(rows, vocabulary)` are not -inf.

    Summing floats in cached memory takes a tenth of the time of summing booleans.
    """
    sizes = [
        torch.ne(part, -torch.inf, out=torch.empty_like(part)).sum(1)
        for part in log_probs.split(max(1, _COUNTED // log_probs.shape[1]))
    ]
    return torch.cat(sizes).long().cpu().numpy()


def _largest(log_probs: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Return the largest entries of each row `(rows, vocabulary)`, and their places.

    Both are `(rows, count)`. The entries lie in the blocks with the largest maxima, or behind the
    last block.
    """
    vocabulary = log_probs.shape[1]
    blocks = vocabulary // _BLOCK
    if blocks < _LEAST_BLOCKS * count:
        return log_probs.topk(count, dim=1)
    inside, rest = log_probs.split([blocks * _BLOCK, vocabulary - blocks * _BLOCK], 1)
    chosen = inside.unflatten(1, (blocks, _BLOCK)).amax(2).topk(count, dim=1)[1]
    column = torch.arange(vocabulary, device=log_probs.device)
    places = torch.cat(
        [
            (chosen.unsqueeze(2) * _BLOCK + column[:_BLOCK]).flatten(1),
            column[blocks * _BLOCK :].expand(rest.shape),
        ],
        1,
    )
    best, found = log_probs.gather(1, places).topk(count, dim=1)
    return best, places.gather(1, found)


def rank_within(group: Ints, score: Floats, turn: Ints | None = None) -> tuple[Ints, Ints]:
    """Sort items by group, and within a group by score, best first; ties keep their order.

    Args:
        group: `(n,)` group of each item.
        score: `(n,)`.
        turn: `(n,)`, if given, comes before the score: smaller numbers first.

    Returns:
        The order `(n,)`, and `(n,)` the rank, from 0, of each item of that order in its group.
    """
    order = np.lexsort((-score, group) if turn is None else (-score, turn, group))
    ordered = group[order]
    first = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]][: len(ordered)])
    sizes = np.diff(np.append(first, len(ordered)))
    return order, np.arange(len(ordered)) - np.repeat(first, sizes)


def largest_within(group: Ints, score: Floats, groups: int) -> Floats:
    """Return the largest score of each group `(groups,)`; -inf for an empty group."""
    largest = np.full(groups, -np.inf)
    np.maximum.at(largest, group, score)
    return largest
