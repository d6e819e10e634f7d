"""Token-level ensembles: models that write in the same order over the same vocabulary.

Their probabilities are averaged at every step of one search; `sequence_ensemble.py` averages those
of whole sequences.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from onmt_entmax.nn.support import Distribution, Support
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
        if any(_special_symbols(stepper) != _special_symbols(first) for stepper in steppers):
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

    def source_lengths(self, batch: Any) -> list[int]:
        """Return the number of source tokens of each sentence, the same for every model."""
        return self.steppers[0].source_lengths(batch)

    def step(self, state: tuple[Any, ...], tokens: Tensor) -> Step:
        """Append `tokens` `(rows,)`, and average the probabilities and what attention there is."""
        steps = [
            stepper.step(part, tokens) for stepper, part in zip(self.steppers, state, strict=True)
        ]
        present = [step.attention for step in steps if step.attention is not None]
        attention = None
        if present:  # some may lack columns of padding
            width = min(weights.size(1) for weights in present)
            attention = torch.stack([weights[:, :width] for weights in present]).mean(0)
        lengths = (step.source_lengths for step in steps if step.attention is not None)
        return Step(
            distribution=_mean(steps),
            attention=attention,
            state=tuple(step.state for step in steps),
            source_lengths=next(lengths, None),
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


def _special_symbols(stepper: Stepper) -> tuple[int, int, int, tuple[int, ...]]:
    """Return size and special symbols of a stepper's target vocabulary."""
    return stepper.vocabulary_size, stepper.bos, stepper.eos, stepper.excluded


def _mean(steps: Sequence[Step]) -> Distribution:
    """Return the log of the mean probability; the support is the union."""
    parts = [step.distribution for step in steps]
    supports = [part for part in parts if isinstance(part, Support)]
    if len(supports) < len(steps):
        # On a GPU, supports are on the CPU, and other distributions are not.
        device = next(part.device for part in parts if isinstance(part, Tensor))
        log_probs = torch.stack([step.log_probs.to(device) for step in steps])
        # Where every model gives -inf, logsumexp gives -inf and not nan.
        return log_probs.logsumexp(0) - math.log(len(steps))
    rows, vocabulary = supports[0][:2]
    # A key for each pair of a row and a token; each model has a row of `log_probs`, each key of the
    # union a column.
    keys = torch.cat([support.row * vocabulary + support.token for support in supports])
    union, column = keys.unique(return_inverse=True)
    values = torch.cat([support.log_prob for support in supports])
    models = [torch.full_like(support.row, index) for index, support in enumerate(supports)]
    log_probs = values.new_full((len(steps), len(union)), -torch.inf)
    log_probs[torch.cat(models), column] = values
    mean = log_probs.logsumexp(0) - math.log(len(steps))
    row = union // vocabulary
    return Support(rows, vocabulary, row, union - row * vocabulary, mean)
