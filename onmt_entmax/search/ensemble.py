"""The average of several models' probabilities of whole strings, and what is proven about it.

Models that write in the same order over the same vocabulary are averaged token by token while a
search goes on (`Stepper`). Models that do not (one writes from right to left, say) have nothing in
common but strings. With weights w_k that sum to 1, the mixture

    p(y) = sum_k w_k p_k(y)

is a distribution over strings again, and searches that have proven something about each p_k prove
something about p. Let L_k be the strings listed by model k's search, with their probabilities, and
r_k a number that no other string's probability is above: 0 where the search was exhaustive, which
sparse outputs make the common case. Then for every string y

    sum_{k: y in L_k} w_k p_k(y)  <=  p(y)  <=  the same + sum_{k: y not in L_k} w_k r_k,

and a string in no list is at most sum_k w_k r_k. Where all r_k are 0, p is known completely. A list
may know its strings up to a slack s_k only, with s_k <= r_k: then each has up to w_k s_k more.
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

from onmt_entmax.nn.output import Distribution, Support
from onmt_entmax.search.certificate import Level
from onmt_entmax.search.stepper import Step, Stepper


@dataclass(frozen=True)
class Listed:
    """What is known of one model's distribution over the strings for one source."""

    probabilities: Mapping[str, float]
    rest: float
    """No string that is not listed has a probability above this; 0 only where none has any."""
    slack: float = 0.0
    """A string that is listed may have up to so much more than the list says; at most `rest`."""


@dataclass(frozen=True)
class Mixture:
    """Strings by their probability in the mixture, the most probable first."""

    strings: tuple[str, ...]
    probabilities: tuple[float, ...]
    """At least so much; exactly so much where the level is `exhaustive`."""
    bound: float
    """No string outside `strings` has a probability above this, and one of them has at most so much
    more than is said. 0 only where everything is known."""
    level: Level
    """`exhaustive`: these are all strings of positive probability. `optimal`: no string is more
    probable than the first. `none`: neither is proven."""
    gap: float
    """The first log-probability minus the most that any other string may have, in nats; inf where
    everything is known, -inf where nothing is listed. `optimal` means that it is not negative."""
    proven: int
    """How many strings, from the first, hold their rank among all strings."""


def mix(parts: Sequence[Listed], weights: Sequence[float]) -> Mixture:
    """The mixture of what is listed.

    Args:
        parts: one for each model.
        weights: as many, positive, with sum 1.
    """
    assert len(parts) == len(weights) > 0
    assert min(weights) > 0
    assert abs(sum(weights) - 1) < 1e-9
    assert all(0 <= part.slack <= part.rest for part in parts)
    known = all(part.rest == 0 for part in parts)
    bound = sum(weight * part.rest for part, weight in zip(parts, weights, strict=True))
    if not known:  # which a sum that is too small for a float must not hide
        bound = max(bound, sys.float_info.min)
    least: dict[str, float] = {}
    most: dict[str, float] = {}
    for part, weight in zip(parts, weights, strict=True):
        for string, probability in part.probabilities.items():
            least[string] = least.get(string, 0.0) + weight * probability
            # What it may have with models that do not list it, less this one's share.
            most[string] = most.get(string, bound) + weight * (probability + part.slack - part.rest)
    # At equal probability the first to be listed comes first: the sort is stable.
    order = sorted(least, key=lambda string: -least[string])

    # The most that any string behind each may have: those in no list, and those further back.
    behind = [*accumulate((most[string] for string in reversed(order)), max, initial=bound)][-2::-1]
    holds = (least[string] >= other for string, other in zip(order, behind, strict=True))
    first = least[order[0]] if order else 0.0
    if known:
        proven, gap = len(order), math.inf
    elif first > 0:
        proven, gap = sum(takewhile(bool, holds)), math.log(first) - math.log(behind[0])
    else:  # nothing is listed, or nothing that a float could tell from 0
        proven, gap = 0, -math.inf
    return Mixture(
        strings=tuple(order),
        probabilities=tuple(least[string] for string in order),
        bound=bound,
        level="exhaustive" if known else "optimal" if proven else "none",
        gap=gap,
        proven=proven,
    )


class EnsembleStepper:
    """Several models as one, whose probabilities are the mean of theirs; its support is the union
    of theirs.

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
        """A stepper of copies of the models in float64."""
        return EnsembleStepper([stepper.double() for stepper in self.steppers])

    def start(self, batch: Any) -> tuple[Any, ...]:
        """Return every model's state."""
        return tuple(stepper.start(batch) for stepper in self.steppers)

    def step(self, state: tuple[Any, ...], tokens: Tensor) -> Step:
        """Append `tokens` (rows,) and average; attention is the mean over the models that have
        one."""
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
        """Return every model's state of `rows`."""
        return tuple(
            stepper.select(part, rows) for stepper, part in zip(self.steppers, state, strict=True)
        )

    def join(self, states: Sequence[tuple[Any, ...]]) -> tuple[Any, ...]:
        """Join every model's states."""
        parts = zip(*states, strict=True)
        return tuple(stepper.join(part) for stepper, part in zip(self.steppers, parts, strict=True))


def _mean_attention(attentions: Sequence[Tensor]) -> Tensor:
    """The mean of attentions (rows, source length); some models drop what is padding by now."""
    width = min(attention.size(1) for attention in attentions)
    return torch.stack([attention[:, :width] for attention in attentions]).mean(0)


def _mean(steps: Sequence[Step]) -> Distribution:
    """The mean of the probabilities of several models' steps; its support is the union."""
    supports = [s.distribution for s in steps if isinstance(s.distribution, Support)]
    if len(supports) < len(steps):
        log_probs = torch.stack([step.log_probs for step in steps])
        # logsumexp gives -inf, not nan, where every model says -inf.
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
