"""Select the candidates for a beam from the log-probabilities of one step."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from onmt_entmax.nn.support import Distribution, Support
from onmt_entmax.search.arrays import Floats, Ints, rank_within
from onmt_entmax.search.log_probs import at_most_one, look_up


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
    """`(rows,)` bound on the log-probabilities of the tokens that are neither `eos` nor candidates;
    -inf if they all have probability 0"""


class _Listed(NamedTuple):
    """Tokens of some rows; all of positive probability, or at least the most probable ones."""

    row: Ints
    """`(listed,)` ascending"""
    token: Ints
    """`(listed,)`"""
    log_prob: Floats
    """`(listed,)`"""
    finish: Floats
    """`(rows,)` log-probability of `eos`"""
    support: Ints
    """`(rows,)` tokens of positive probability, listed or not"""


# The most entries of a support for each token that a beam needs. Sorting more entries takes longer
# than finding the best tokens in dense rows.
_MOST_ENTRIES = 16


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
    most = min(width + 1, vocabulary)  # one more, since `eos` may be one of them
    if isinstance(distribution, Support) and len(distribution.row) > _MOST_ENTRIES * rows * most:
        distribution = distribution.dense()
    if isinstance(distribution, Support):
        listed = _list_support(distribution, eos)
    else:
        listed = _list_best(distribution, eos, most)
    is_candidate = (listed.token != eos) & (listed.log_prob > -np.inf)
    row, log_prob = listed.row[is_candidate], listed.log_prob[is_candidate]
    continuations = listed.support - (listed.finish > -np.inf)
    # The most probable tokens are listed, so no other is more probable than the least listed one.
    least = np.zeros(rows)
    np.minimum.at(least, row, log_prob)
    left_out = continuations > np.bincount(row, minlength=rows)
    return Expansion(
        finish=listed.finish,
        row=row,
        token=listed.token[is_candidate],
        log_prob=log_prob,
        continuations=continuations,
        unlisted=np.where(left_out, least, -np.inf),
    )


def _list_support(support: Support, eos: int) -> _Listed:
    """List all tokens of positive probability."""
    row, token = support.row.numpy(), support.token.numpy()
    log_prob = at_most_one(support.log_prob)
    finish, ends = np.full(support.rows, -np.inf), token == eos
    finish[row[ends]] = log_prob[ends]
    return _Listed(row, token, log_prob, finish, np.bincount(row, minlength=support.rows))


def _list_best(log_probs: Tensor, eos: int, most: int) -> _Listed:
    """List the `most` most probable tokens of each row of `log_probs` `(rows, vocabulary)`."""
    # Comparing into floats, and summing them, is several times faster than with booleans.
    inside = torch.ne(log_probs, -torch.inf, out=torch.empty_like(log_probs))
    support = inside.sum(1, dtype=torch.float32).long().cpu().numpy()
    best, tokens = log_probs.topk(most)
    return _Listed(
        row=np.repeat(np.arange(len(log_probs)), most),
        token=tokens.flatten().cpu().numpy(),
        log_prob=at_most_one(best.flatten()),
        finish=at_most_one(log_probs[:, eos]),
        support=support,
    )


def with_candidates(
    options: Expansion, distribution: Distribution, row: Ints, token: Ints, width: int
) -> Expansion:
    """Add each row's `width` most probable of some tokens to the candidates.

    Args:
        options: what `expand` returned.
        distribution: the distributions of the same rows.
        row: `(pairs,)` row of each pair.
        token: `(pairs,)` token of each pair, never `eos`; it may be a candidate, or impossible.
        width: the most tokens that are added to a row.
    """
    # Pairs of a row and a token are compared as the numbers `row * size + token`.
    size = 1 + max(token.max(initial=0), options.token.max(initial=0))
    log_prob = look_up(distribution, row, token)
    order, rank = rank_within(row, log_prob)
    best = order[rank < width]
    is_candidate = np.isin(row[best] * size + token[best], options.row * size + options.token)
    new = best[~is_candidate & (log_prob[best] > -np.inf)]
    rows = np.concatenate([options.row, row[new]])
    tokens = np.concatenate([options.token, token[new]])
    log_probs = np.concatenate([options.log_prob, log_prob[new]])
    by_row = np.argsort(rows, kind="stable")
    return options._replace(row=rows[by_row], token=tokens[by_row], log_prob=log_probs[by_row])
