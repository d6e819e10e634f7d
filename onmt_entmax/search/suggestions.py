"""Suggest how an output may go on after a prefix."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from onmt_entmax.search.forced import (
    TokenScore,
    along_targets,
    clipped_log_probs,
    first_excluded,
    token_scores,
    total_log_prob,
)
from onmt_entmax.search.stepper import Step, Stepper, no_support


@dataclass(frozen=True)
class Suggestion:
    """How an output may go on after a prefix."""

    log_prob: float
    """Log-probability of the prefix; -inf if the model excludes it."""
    excluded_at: int | None
    """Position (from 0) of the prefix's first token that the model excludes, or None."""
    continuations: tuple[tuple[int, float], ...]
    """All possible next tokens, the end symbol included, with their log-probabilities, the most
    probable first. A token is possible if it has positive probability and is not banned."""
    completion: tuple[int, ...]
    """The tokens that must follow: as long as a single one is possible."""
    complete: bool
    """Whether the end symbol is all that is possible after `completion`."""


@torch.inference_mode()
def suggest(
    stepper: Stepper,
    batch: Any,
    prefix: Sequence[int] = (),
    max_length: int = 100,
    banned: Collection[int] = (),
) -> Suggestion:
    """Suggest how an output may go on (Peters, Niculae and Martins 2019, Figure 2).

    With a sparse output the next tokens are few, and often there is only one: then the continuation
    is forced, and a writer need not type it.

    Args:
        stepper: the model.
        batch: a batch of one sentence.
        prefix: token ids that were written already.
        max_length: the most tokens of prefix and completion together.
        banned: token ids that the output may not have.

    Raises:
        SearchError: if the model gives no token a positive probability.
    """
    prefix_scores, step = _score_prefix(stepper, batch, prefix)
    never = {*stepper.excluded, *banned}
    continuations = _possible(step, never)
    possible = continuations
    completion: list[int] = []
    while len(possible) == 1 and len(prefix) + len(completion) < max_length:
        ((token, _),) = possible
        if token == stepper.eos:
            break
        completion.append(token)
        step = stepper.step(step.state, torch.tensor([token]))
        possible = _possible(step, never)
    return Suggestion(
        log_prob=total_log_prob(prefix_scores),
        excluded_at=first_excluded(prefix_scores),
        continuations=tuple(continuations),
        completion=tuple(completion),
        complete=[token for token, _ in possible] == [stepper.eos],
    )


def _score_prefix(
    stepper: Stepper, batch: Any, prefix: Sequence[int]
) -> tuple[list[TokenScore], Step]:
    """Return the score of each token of a prefix, and the step after the prefix.

    Args:
        stepper: the model.
        batch: one sentence.
        prefix: token ids.

    Raises:
        SearchError: if the model gives no token a positive probability.
    """
    scores: list[TokenScore] = []
    last: Step | None = None
    for _, tokens, step in along_targets(stepper, batch, [prefix]):
        scores += token_scores(step, tokens)
        last = step
    assert last is not None, "there is always the step of the end symbol"
    return scores[:-1], last  # without the score of the end symbol


def _possible(step: Step, never: Collection[int]) -> list[tuple[int, float]]:
    """Return the tokens that may follow with their log-probabilities, the most probable first.

    Args:
        step: a step of one row.
        never: tokens that no output has.

    Raises:
        SearchError: if the model gives no token a positive probability.
    """
    log_probs = clipped_log_probs(step)[0]
    inside = (log_probs > -torch.inf).nonzero()[:, 0].tolist()
    if not inside:
        raise no_support()
    pairs = [(token, float(log_probs[token])) for token in inside if token not in never]
    return sorted(pairs, key=lambda pair: -pair[1])
