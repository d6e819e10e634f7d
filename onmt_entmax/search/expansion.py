"""From the log-probabilities of a step to candidates: the few tokens that a beam can still care
about."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

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


def expand(log_probs: Tensor, eos: int, width: int) -> Expansion:
    """Find what may follow each row: the whole support, or each row's most probable tokens.

    Args:
        log_probs: (rows, vocabulary), -inf outside the support.
        eos: id of the end symbol.
        width: a row's `width` most probable tokens other than `eos` are always among the
            candidates; the rest of its support may be left out.
    """
    rows, vocabulary = log_probs.shape
    inside = log_probs > -torch.inf
    support = inside.sum(1)
    kept = min(width + 1, vocabulary)  # one more, since `eos` may be one of them
    if int(support.sum()) <= rows * kept:
        index = inside.nonzero()
        row, token = index.cpu().numpy().T
        values = log_probs[index[:, 0], index[:, 1]]
    else:
        best, tokens = log_probs.topk(kept, dim=1)
        row, token = np.repeat(np.arange(rows), kept), tokens.flatten().cpu().numpy()
        values = best.flatten()
    # Rounding can lift a certain token to slightly more than probability one. Cut here, so that
    # a probability never grows along a string.
    log_prob = np.minimum(values.double().cpu().numpy(), 0.0)
    finish = np.minimum(log_probs[:, eos].double().cpu().numpy(), 0.0)
    wanted = (token != eos) & (log_prob > -np.inf)
    return Expansion(
        finish=finish,
        row=row[wanted],
        token=token[wanted],
        log_prob=log_prob[wanted],
        continuations=support.cpu().numpy() - (finish > -np.inf),
    )


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
