"""Select the candidates for a beam from the log-probabilities of one step."""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from onmt_entmax.nn.support import Distribution, Support
from onmt_entmax.search.stepper import SearchError, no_support

_EXCESS = 0.1  # how far rounding may lift the logarithm of a 16-bit probability above 0

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
    unlisted: Floats
    """`(rows,)` no token that is neither `eos` nor a candidate has a log-probability above this;
    -inf if there is none of positive probability"""


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
    if isinstance(distribution, Support) and len(distribution.row) > 16 * rows * kept:
        distribution = distribution.dense()  # sorting so many entries costs more
    if isinstance(distribution, Support):
        row, token = distribution.row.numpy(), distribution.token.numpy()
        log_prob, support = _at_most_one(distribution.log_prob), np.bincount(row, minlength=rows)
        finish, ends = np.full(rows, -np.inf), token == eos
        finish[row[ends]] = log_prob[ends]
    else:
        # Comparing into floats, and summing them, is several times faster than with booleans.
        inside = torch.ne(distribution, -torch.inf, out=torch.empty_like(distribution))
        support = inside.sum(1, dtype=torch.float32).long().cpu().numpy()
        best, tokens = distribution.topk(kept)
        row, token = np.repeat(np.arange(rows), kept), tokens.flatten().cpu().numpy()
        log_prob, finish = _at_most_one(best.flatten()), _at_most_one(distribution[:, eos])
    wanted = (token != eos) & (log_prob > -np.inf)
    row, token, log_prob = row[wanted], token[wanted], log_prob[wanted]
    continuations = support - (finish > -np.inf)
    # The most probable tokens are listed: the others are at most as probable as the least of these.
    least = np.zeros(rows)
    np.minimum.at(least, row, log_prob)
    left_out = continuations > np.bincount(row, minlength=rows)
    unlisted = np.where(left_out, least, -np.inf)
    return Expansion(finish, row, token, log_prob, continuations, unlisted)


def look_up(distribution: Distribution, row: Ints, token: Ints) -> Floats:
    """Return the log-probability `(pairs,)` of pairs of a row and a token."""
    if not isinstance(distribution, Support):
        return _at_most_one(distribution[torch.from_numpy(row), torch.from_numpy(token)])
    keys = (distribution.row * distribution.vocabulary + distribution.token).numpy()
    wanted = row * distribution.vocabulary + token
    place = np.searchsorted(keys, wanted)
    inside = np.append(keys, -1)[place] == wanted
    values = np.full(len(row), -np.inf)
    values[inside] = _at_most_one(distribution.log_prob[torch.from_numpy(place[inside])])
    return values


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
    values = look_up(distribution, row, token)
    inside = values > -np.inf
    row, token = row[inside], token[inside]
    if not len(row):
        return distribution, row, values[inside]
    if isinstance(distribution, Support):
        keys = distribution.row * distribution.vocabulary + distribution.token
        left = ~torch.isin(keys, torch.from_numpy(row * distribution.vocabulary + token))
        distribution = distribution._replace(
            row=distribution.row[left],
            token=distribution.token[left],
            log_prob=distribution.log_prob[left],
        )
    else:
        distribution[torch.from_numpy(row), torch.from_numpy(token)] = -torch.inf
    return distribution, row, values[inside]


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
    if values.max(initial=-np.inf) > _EXCESS:
        raise SearchError(
            f"the model gives a token the log-probability {values.max():.3g}: none is above 0 "
            "(a step must return natural logarithms of probabilities, not scores)"
        )
    return np.minimum(values, 0.0)


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
    return order, np.arange(len(ordered)) - np.searchsorted(ordered, ordered)


def largest_within(group: Ints, score: Floats, groups: int) -> Floats:
    """Return the largest score of each group `(groups,)`; -inf for an empty group."""
    largest = np.full(groups, -np.inf)
    np.maximum.at(largest, group, score)
    return largest
