"""Check, look up and remove log-probabilities in the distributions of one step.

A distribution has the log-probabilities of all tokens, or those of its support alone.
"""

import numpy as np
import torch
from torch import Tensor

from onmt_entmax.nn.support import Distribution, Support
from onmt_entmax.search.arrays import Floats, Ints
from onmt_entmax.search.stepper import SearchError, no_support

_EXCESS = 0.1  # how far rounding may lift the logarithm of a 16-bit probability above 0


def check_size(distribution: Distribution, vocabulary_size: int) -> None:
    """Check that a distribution is over the tokens of the vocabulary.

    Raises:
        SearchError: if it is over more tokens, or fewer.
    """
    size = distribution.vocabulary if isinstance(distribution, Support) else distribution.shape[1]
    if size != vocabulary_size:
        raise SearchError(
            f"a step gives probabilities of size {size}, the vocabulary has {vocabulary_size}"
        )


def at_most_one(log_prob: Tensor) -> Floats:
    """Return log-probabilities in float64, clipped to at most 0.

    Rounding can lift the probability of a certain token slightly above 1, but certificates rely on
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


def look_up(distribution: Distribution, row: Ints, token: Ints) -> Floats:
    """Return the log-probability `(pairs,)` of pairs of a row and a token.

    Args:
        distribution: the distributions of the rows.
        row: `(pairs,)` row of each pair.
        token: `(pairs,)` token of each pair.
    """
    if not isinstance(distribution, Support):
        return at_most_one(distribution[torch.from_numpy(row), torch.from_numpy(token)])
    keys = _keys(distribution).numpy()  # ascending
    wanted = row * distribution.vocabulary + token
    place = np.searchsorted(keys, wanted)
    inside = np.append(keys, -1)[place] == wanted  # the -1 stands behind the last key
    values = np.full(len(row), -np.inf)
    values[inside] = at_most_one(distribution.log_prob[torch.from_numpy(place[inside])])
    return values


def remove(distribution: Distribution, row: Ints, token: Ints) -> tuple[Distribution, Ints, Floats]:
    """Remove tokens from distributions.

    Args:
        distribution: the distributions of the rows; may be changed in place.
        row: `(pairs,)` row of each pair.
        token: `(pairs,)` token of each pair; no pair twice.

    Returns:
        The distribution without them; row and log-probability of each pair that had positive
        probability.
    """
    log_prob = look_up(distribution, row, token)
    inside = log_prob > -np.inf
    row, token, log_prob = row[inside], token[inside], log_prob[inside]
    if not len(row):
        return distribution, row, log_prob
    if isinstance(distribution, Support):
        removed = torch.from_numpy(row * distribution.vocabulary + token)
        left = ~torch.isin(_keys(distribution), removed)
        distribution = distribution._replace(
            row=distribution.row[left],
            token=distribution.token[left],
            log_prob=distribution.log_prob[left],
        )
    else:
        distribution[torch.from_numpy(row), torch.from_numpy(token)] = -torch.inf
    return distribution, row, log_prob


def _keys(support: Support) -> Tensor:
    """Return a number `(entries,)` for each row and token, in ascending order."""
    return support.row * support.vocabulary + support.token
