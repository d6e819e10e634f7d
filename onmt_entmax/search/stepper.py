"""What a search needs of a model: the probabilities of the next token, one step at a time.

States are values: `step` and `select` return new ones and leave the old ones usable, so that a
search may put a state aside and come back to it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import torch
from torch import Tensor

from onmt_entmax.modules.output_decoding import Distribution, Support


@dataclass(frozen=True)
class Step:
    """What one step computed for each row."""

    distribution: Distribution
    """Log-probabilities (natural) of all tokens (rows, vocabulary_size), -inf outside the support,
    or those of the support alone; the caller may overwrite it."""
    attention: Tensor | None
    """(rows, source length), where the stepper was asked for it."""
    state: Any
    """The state after the step, for the same rows."""
    source_lengths: Tensor | None = None
    """(rows,) how much of `attention` is not padding, where there is attention."""

    @cached_property
    def log_probs(self) -> Tensor:
        """(rows, vocabulary), float, -inf outside the support."""
        given = self.distribution
        return given.dense() if isinstance(given, Support) else given

    def attention_rows(self) -> list[Tensor] | None:
        """The attention of each row (source length,), without padding."""
        if self.attention is None:
            return None
        rows = self.attention.unbind(0)
        if self.source_lengths is None:
            return list(rows)
        lengths = self.source_lengths.tolist()
        return [row[:length] for row, length in zip(rows, lengths, strict=True)]


class Stepper(Protocol):
    """A model that is run one token at a time over rows, each of which holds one prefix of one
    sentence.

    A search calls it in `torch.inference_mode`; tokens and rows are on the CPU. Several threads may
    search with one stepper if it keeps what it computes in the states alone.
    """

    bos: int
    """Id of the token that every prefix starts with."""
    eos: int
    """Id of the token that ends a string."""
    excluded: tuple[int, ...]
    """Ids that have a column but are no symbol of any string: padding and `bos`. No target contains
    them, yet a softmax gives them probability; a search never takes them and counts them as
    excluded by request."""
    vocabulary_size: int
    dense: bool
    """Whether every token always has positive probability (softmax)."""
    can_join: bool
    """Whether rows of different lengths may be in one state."""

    def start(self, batch: Any) -> Any:
        """Return the state of one row for each sentence of the batch, in the batch's order.

        A batch is whatever the stepper takes, if its `len` is the number of its sentences.
        """
        ...

    def step(self, state: Any, tokens: Tensor) -> Step:
        """Append a token to each row. `tokens` (rows,) int64; the first ones are `bos`."""
        ...

    def select(self, state: Any, rows: Tensor) -> Any:
        """Return the state of the given rows (new rows,) int64, in that order, repetitions
        allowed."""
        ...

    def join(self, states: Sequence[Any]) -> Any:
        """Return one state of all rows, in order; only called where `can_join`."""
        ...

    def double(self) -> Stepper:
        """Return a stepper of the same model in float64; only `verify` needs one."""
        ...


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
