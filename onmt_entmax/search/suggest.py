"""Suggesting how a string may go on (Peters, Niculae and Martins 2019, Figure 2).

Where the output is sparse, the list of next tokens is finite and short, and often has one member:
then the continuation is forced, and a writer need not type it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from onmt_entmax.search.errors import no_support
from onmt_entmax.search.score import score_targets
from onmt_entmax.search.stepper import Stepper


@dataclass(frozen=True)
class Suggestion:
    """How the strings of a sentence may go on after a prefix."""

    log_prob: float
    """Log-probability of the prefix; -inf where the model excludes it."""
    excluded_at: int | None
    """Position (from 0) of the prefix's first token that the model excludes, or None."""
    continuations: tuple[tuple[int, float], ...]
    """Every next token of positive probability with its log-probability, the most probable first;
    the end symbol may be among them."""
    completion: tuple[int, ...]
    """The tokens that follow for certain: as long as one single token is possible."""
    complete: bool
    """Whether the string must end after `completion`."""


@torch.inference_mode()
def suggest(
    stepper: Stepper, batch: Any, prefix: Sequence[int] = (), max_length: int = 100
) -> Suggestion:
    """Say how a string may go on.

    Args:
        stepper: the model.
        batch: one sentence.
        prefix: token ids that were written already.
        max_length: longest prefix and completion together.
    """
    known = score_targets(stepper, batch, [prefix])[0].steps[:-1]
    excluded = [i for i, step in enumerate(known) if step.log_prob == -torch.inf]
    state, last = stepper.start(batch), stepper.bos
    for token in prefix:
        state, last = stepper.step(state, torch.tensor([last])).state, token
    first: tuple[tuple[int, float], ...] | None = None
    completion: list[int] = []
    while True:
        step = stepper.step(state, torch.tensor([last]))
        log_probs = step.log_probs[0].clamp(max=0.0)
        inside = (log_probs > -torch.inf).nonzero()[:, 0].tolist()
        if first is None:
            options = [(token, float(log_probs[token])) for token in inside]
            allowed = [option for option in options if option[0] not in stepper.excluded]
            first = tuple(sorted(allowed, key=lambda option: -option[1]))
        if not inside:
            raise no_support()
        last, state = inside[0], step.state
        ends = last == stepper.eos or len(prefix) + len(completion) >= max_length
        if len(inside) > 1 or ends or last in stepper.excluded:
            break
        completion.append(last)
    return Suggestion(
        log_prob=sum(step.log_prob for step in known),
        excluded_at=excluded[0] if excluded else None,
        continuations=first,
        completion=tuple(completion),
        complete=inside == [stepper.eos],
    )
