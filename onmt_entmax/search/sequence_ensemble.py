"""Sequence-level ensembles: average the probabilities of whole sequences.

Models that have only complete outputs in common, such as a left-to-right and a right-to-left one,
are searched separately. With weights w_k that sum to 1, the average

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
import operator
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
    """No other sequence has a probability above this; 0 only if all others have probability 0."""
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
    """How many sequences, from the first, have the same rank among all sequences."""


def average_sequences(
    parts: Sequence[ListedSequences], weights: Sequence[float]
) -> SequenceEnsemble:
    """Average the distributions of several models over sequences.

    Args:
        parts: what each model's search has listed.
        weights: the weights of the models, positive, with sum 1.
    """
    complete = all(part.rest == 0 for part in parts)
    bound = sum(weight * part.rest for part, weight in zip(parts, weights, strict=True))
    if not complete:  # a sum too small for a float must not look like 0
        bound = max(bound, sys.float_info.min)
    least, most = _limits(parts, weights, bound)
    # A stable sort: at equal probability the sequence listed first comes first.
    order = sorted(least, key=lambda sequence: -least[sequence])
    probabilities = tuple(least[sequence] for sequence in order)
    rivals = _most_below([most[sequence] for sequence in order], bound)
    level: Level
    if complete:
        level, proven, gap = "exhaustive", len(order), math.inf
    else:
        # A rank is proven if those above it are, and nothing below it can have more.
        reaches = map(operator.ge, probabilities, rivals)
        proven = sum(takewhile(bool, reaches))
        level = "optimal" if proven else "none"
        gap = _gap(probabilities[0], rivals[0]) if order else -math.inf
    return SequenceEnsemble(
        sequences=tuple(order),
        probabilities=probabilities,
        bound=bound,
        level=level,
        gap=gap,
        proven=proven,
    )


def _limits(
    parts: Sequence[ListedSequences], weights: Sequence[float], bound: float
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the least and the most average probability of each sequence that any model lists.

    Args:
        parts: what each model's search has listed.
        weights: the weights of the models.
        bound: the most of a sequence that no model lists, sum_k w_k r_k.
    """
    least: dict[str, float] = {}
    most: dict[str, float] = {}
    for part, weight in zip(parts, weights, strict=True):
        for sequence, probability in part.probabilities.items():
            least[sequence] = least.get(sequence, 0.0) + weight * probability
            # `bound` has w_k r_k for every model; replace that of this one, which lists it.
            before = most.get(sequence, bound)
            most[sequence] = before + weight * (probability + part.slack - part.rest)
    return least, most


def _most_below(most: Sequence[float], bound: float) -> list[float]:
    """Return for each rank the most that any sequence below it may have, listed or not.

    Args:
        most: the most of each listed sequence, in their order.
        bound: the most of any other sequence.
    """
    # Largest of the bound alone, with the last sequence, ..., with all of them.
    *below_each, _ = accumulate(reversed(most), max, initial=bound)
    return below_each[::-1]


def _gap(first: float, rival: float) -> float:
    """Return the difference of two logarithms, negative if the first is smaller.

    Args:
        first: the least probability of the first sequence; 0 if it is rounded to that.
        rival: the most of any other, above 0.
    """
    if first == 0:
        return -math.inf
    gap = math.log(first) - math.log(rival)
    if first < rival:  # though their logarithms may round to the same number
        gap = min(gap, -math.ulp(1.0))
    return gap
