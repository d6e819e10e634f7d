"""Sequence-level ensembles: average the probabilities of whole sequences.

Models that have only complete outputs in common, such as one that writes from right to left, are
searched apart. With weights w_k that sum to 1, the average

    p(y) = sum_k w_k p_k(y)

is a distribution over sequences, and what the searches have proven about each p_k proves something
about p. Let L_k be the sequences that model k's search has listed, with their probabilities, and
r_k a bound on the probability of any other: 0 if that search was exhaustive, the common case for
sparse outputs. Then for every sequence y

    sum_{k: y in L_k} w_k p_k(y)  <=  p(y)  <=  the same + sum_{k: y not in L_k} w_k r_k,

and a sequence in no list has at most sum_k w_k r_k. If all r_k are 0, p is known completely. Where
a list knows its probabilities only up to a slack s_k <= r_k, each has up to w_k s_k more.
"""

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, takewhile

from onmt_entmax.search.certificate import Level


@dataclass(frozen=True)
class ListedSequences:
    """The part of one model's distribution over outputs that its search has listed."""

    probabilities: Mapping[str, float]
    rest: float
    """No other sequence has a probability above this; 0 only if none has any."""
    slack: float = 0.0
    """How much more probability a listed sequence may have; at most `rest`."""


@dataclass(frozen=True)
class SequenceEnsemble:
    """Sequences with their average probabilities, the most probable first."""

    sequences: tuple[str, ...]
    probabilities: tuple[float, ...]
    """Lower bounds; exact if the level is `exhaustive`."""
    bound: float
    """No other sequence has a probability above this, and none of these exceeds its lower bound by
    more. 0 only if everything is known."""
    level: Level
    """`exhaustive`: these are all sequences of positive probability. `optimal`: none is more
    probable than the first. `none`: neither is proven."""
    gap: float
    """Log-probability of the first minus the most that any other sequence may have, in nats; inf if
    everything is known, -inf if nothing is listed. `optimal` means that it is not negative."""
    proven: int
    """How many sequences, from the first, have their rank among all."""


def average_sequences(
    parts: Sequence[ListedSequences], weights: Sequence[float]
) -> SequenceEnsemble:
    """Average the distributions of several models over sequences.

    Args:
        parts: what each model's search has listed.
        weights: of the models, positive, with sum 1.
    """
    known = all(part.rest == 0 for part in parts)
    bound = sum(weight * part.rest for part, weight in zip(parts, weights, strict=True))
    if not known:  # a sum too small for a float must not look like 0
        bound = max(bound, sys.float_info.min)
    least: dict[str, float] = {}
    most: dict[str, float] = {}
    for part, weight in zip(parts, weights, strict=True):
        for sequence, probability in part.probabilities.items():
            least[sequence] = least.get(sequence, 0.0) + weight * probability
            # `bound` counts every model as not listing it; replace this one's share.
            unlisted = most.get(sequence, bound)
            most[sequence] = unlisted + weight * (probability + part.slack - part.rest)
    # A stable sort: at equal probability the sequence listed first comes first.
    order = sorted(least, key=lambda sequence: -least[sequence])
    # The most that any sequence ranked below each may have, listed or not.
    upwards = (most[sequence] for sequence in reversed(order))
    below = [*accumulate(upwards, max, initial=bound)][-2::-1]
    holds = (least[sequence] >= other for sequence, other in zip(order, below, strict=True))
    first = least[order[0]] if order else 0.0
    if known:
        proven, gap = len(order), math.inf
    elif first > 0:
        proven, gap = sum(takewhile(bool, holds)), math.log(first) - math.log(below[0])
        if not proven:  # logarithms may round to the same number
            gap = min(gap, -math.ulp(1.0))
    else:  # nothing is listed, or only what rounds to 0
        proven, gap = 0, -math.inf
    return SequenceEnsemble(
        sequences=tuple(order),
        probabilities=tuple(least[sequence] for sequence in order),
        bound=bound,
        level="exhaustive" if known else "optimal" if proven else "none",
        gap=gap,
        proven=proven,
    )
