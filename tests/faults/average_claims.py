"""Claims of averages over the sequences that several searches have listed.

`onmt_entmax.search.sequence_ensemble` derives the claims.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

from onmt_entmax.search.certificate import Level
from onmt_entmax.search.sequence_ensemble import SequenceEnsemble

_TOLERANCE = 1e-6  # averages are sums of a few probabilities in float32


class SequenceDistribution(NamedTuple):
    """A distribution over sequences, known from enumeration up to the length limit of a search."""

    probabilities: Mapping[str, float]
    """Probability of each sequence within the limit; all others within it have 0."""
    most_beyond: float
    """Probability of the most probable prefix beyond the limit: no longer sequence has more."""


def check_average(average: SequenceEnsemble, truth: SequenceDistribution) -> Level:
    """Check what an average of listed sequences claims about the true average; return its level.

    Args:
        average: the average of the lists of several searches.
        truth: the average of the distributions that were searched.
    """
    _check_listed_probabilities(average, truth.probabilities)
    listed = set(average.sequences)
    unlisted = [p for text, p in truth.probabilities.items() if text not in listed]
    assert max([*unlisted, truth.most_beyond]) <= average.bound + _TOLERANCE
    if average.level == "exhaustive":
        assert not unlisted
    _check_proven_ranks(average, truth.probabilities)
    if average.level == "optimal":
        _check_optimal_average(average, truth.probabilities)
    return average.level


def _check_listed_probabilities(average: SequenceEnsemble, truth: Mapping[str, float]) -> None:
    """Each probability is a lower limit, and the true one is above it by at most the bound.

    Models that did not list the sequence add nothing to it, so their part is missing.
    """
    for text, least in zip(average.sequences, average.probabilities, strict=True):
        most = least + average.bound
        assert least - _TOLERANCE <= truth[text] <= most + _TOLERANCE


def _check_proven_ranks(average: SequenceEnsemble, truth: Mapping[str, float]) -> None:
    """No sequence, listed or not, is more probable than a proven one that stands before it."""
    for rank, text in enumerate(average.sequences[: average.proven]):
        later = truth.keys() - set(average.sequences[: rank + 1])
        most = max((truth[other] for other in later), default=0.0)
        assert truth[text] >= most - _TOLERANCE


def _check_optimal_average(average: SequenceEnsemble, truth: Mapping[str, float]) -> None:
    """No sequence is more probable than the first, whose gap is at most the true one."""
    first = average.sequences[0]
    assert truth[first] >= max(truth.values()) - _TOLERANCE
    others = [p for text, p in truth.items() if text != first]
    second = max([*others, 1e-300])  # a probability that has a logarithm
    # Both probabilities are known up to 1e-6, so their ratio up to 1e-6 of the smaller one.
    error = 2 * _TOLERANCE * (1 + 1 / max(second, _TOLERANCE))
    assert average.gap <= math.log(truth[first] / second) + error
