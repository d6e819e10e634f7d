"""Ensembles: average the next-token probabilities of models, or those of whole sequences.

Token level (`EnsembleStepper`): models that write in the same order over the same vocabulary are
averaged at every step of one search.

Sequence level (`average_sequences`): models that have only complete outputs in common, such as one
that writes from right to left, are searched apart. With weights w_k that sum to 1, the average

    p(y) = sum_k w_k p_k(y)

is a distribution over sequences, and what the searches have proven about each p_k proves something
about p. Let L_k be the sequences that model k's search has listed, with their probabilities, and
r_k a bound on the probability of any other: 0 if that search was exhaustive, the common case for
sparse outputs. Then for every sequence y

    sum_{k: y in L_k} w_k p_k(y)  <=  p(y)  <=  the same + sum_{k: y not in L_k} w_k r_k,

and a sequence in no list has at most sum_k w_k r_k. If all r_k are 0, p is known completely. Where
a list knows its probabilities only up to a slack s_k <= r_k, each has up to w_k s_k more.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, takewhile
from typing import Any

import torch
from torch import Tensor

from onmt_entmax.nn.support import Distribution, Support
from onmt_entmax.search.certificate import Level
from onmt_entmax.search.stepper import Step, Stepper


class EnsembleStepper:
    """Several models as one: the mean of their probabilities; the support is the union.

    Args:
        steppers: at least one, all with the same target vocabulary.

    Raises:
        ValueError: if the vocabularies have different sizes or special symbols.
    """

    def __init__(self, steppers: Sequence[Stepper]) -> None:
        first = steppers[0]
        for other in steppers[1:]:
            if (other.vocabulary_size, other.bos, other.eos, other.excluded) != (
                first.vocabulary_size,
                first.bos,
                first.eos,
                first.excluded,
            ):
                raise ValueError("the models of an ensemble must have the same target vocabulary")
        self.steppers = tuple(steppers)
        self.bos, self.eos, self.excluded = first.bos, first.eos, first.excluded
        self.vocabulary_size = first.vocabulary_size
        self.dense = any(stepper.dense for stepper in steppers)
        self.can_join = all(stepper.can_join for stepper in steppers)

    def double(self) -> EnsembleStepper:
        """Return a stepper of copies of the models in float64."""
        return EnsembleStepper([stepper.double() for stepper in self.steppers])

    def start(self, batch: Any) -> tuple[Any, ...]:
        """Return the state of every model."""
        return tuple(stepper.start(batch) for stepper in self.steppers)

    def step(self, state: tuple[Any, ...], tokens: Tensor) -> Step:
        """Append `tokens` `(rows,)` and average probabilities, and attention where there is any."""
        steps = [
            stepper.step(part, tokens) for stepper, part in zip(self.steppers, state, strict=True)
        ]
        attentions = [step.attention for step in steps if step.attention is not None]
        lengths = [step.source_lengths for step in steps if step.attention is not None]
        return Step(
            distribution=_mean(steps),
            attention=_mean_attention(attentions) if attentions else None,
            state=tuple(step.state for step in steps),
            source_lengths=lengths[0] if lengths else None,
        )

    def select(self, state: tuple[Any, ...], rows: Tensor) -> tuple[Any, ...]:
        """Return the state of `rows` of every model."""
        return tuple(
            stepper.select(part, rows) for stepper, part in zip(self.steppers, state, strict=True)
        )

    def join(self, states: Sequence[tuple[Any, ...]]) -> tuple[Any, ...]:
        """Join the states of every model."""
        parts = zip(*states, strict=True)
        return tuple(stepper.join(part) for stepper, part in zip(self.steppers, parts, strict=True))


def _mean_attention(attentions: Sequence[Tensor]) -> Tensor:
    """Return the mean of attentions `(rows, source length)`, of which some lack padding columns."""
    width = min(attention.size(1) for attention in attentions)
    return torch.stack([attention[:, :width] for attention in attentions]).mean(0)


def _mean(steps: Sequence[Step]) -> Distribution:
    """Return the log of the mean probability; the support is the union."""
    supports = [s.distribution for s in steps if isinstance(s.distribution, Support)]
    if len(supports) < len(steps):
        # On a GPU, supports are on the CPU, and other distributions are not.
        device = next(d.device for d in (s.distribution for s in steps) if isinstance(d, Tensor))
        log_probs = torch.stack([step.log_probs.to(device) for step in steps])
        # Where every model gives -inf, logsumexp gives -inf and not nan.
        return log_probs.logsumexp(0) - math.log(len(steps))
    rows, vocabulary = supports[0][:2]
    keys = torch.cat([one.row * vocabulary + one.token for one in supports])
    union, place = keys.unique(return_inverse=True)
    values = torch.cat([one.log_prob for one in supports])
    model = torch.cat([torch.full_like(one.row, i) for i, one in enumerate(supports)])
    log_probs = values.new_full((len(steps), len(union)), -torch.inf)
    log_probs[model, place] = values
    mean = log_probs.logsumexp(0) - math.log(len(steps))
    row = union // vocabulary
    return Support(rows, vocabulary, row, union - row * vocabulary, mean)


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
    assert len(parts) == len(weights) > 0
    assert min(weights) > 0
    assert abs(sum(weights) - 1) < 1e-9
    assert all(0 <= part.slack <= part.rest for part in parts)
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
