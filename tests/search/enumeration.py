"""Brute-force enumeration of the support, the reference for every search."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from onmt_entmax.search.stepper import Stepper

Tokens = tuple[int, ...]

ALL_EXCLUDED: dict[Tokens, float] = {(): 0.0}
"""The empty prefix, of log-probability 0, as if everything could be excluded.

As `excluded` of an `EnumeratedSupport` it lets a search report any bound for what is excluded.
"""


@dataclass(frozen=True)
class EnumeratedSupport:
    """Every sequence of positive probability up to a length."""

    sequences: dict[Tokens, float] = field(default_factory=dict)
    """Log-probability of each sequence with its end symbol; the tokens are without it."""
    prefixes: dict[Tokens, float] = field(default_factory=dict)
    """Log-probability of each prefix one token longer than the limit."""
    excluded: dict[Tokens, float] = field(default_factory=dict)
    """Log-probability of each prefix that ends in a token of `Stepper.excluded`."""


@torch.inference_mode()
def enumerate_support(
    stepper: Stepper, batch: Any, max_length: int, limit: int = 5000
) -> EnumeratedSupport:
    """Follow every token of positive probability, one level of the tree at a time.

    Args:
        stepper: the model.
        batch: one sentence.
        max_length: tokens of the longest sequence, without its end symbol.
        limit: most prefixes to hold at once; a model with more is too large for a test.

    Raises:
        ValueError: if a level of the tree has more than `limit` prefixes.
    """
    state = stepper.start(batch)
    live: list[tuple[Tokens, float]] = [((), 0.0)]  # a row of the state each
    support = EnumeratedSupport()
    for length in range(max_length + 1):
        last = torch.tensor([prefix[-1] if prefix else stepper.bos for prefix, _ in live])
        step = stepper.step(state, last)
        followed, rows = [], []
        for row, token, log_prob in _possible_tokens(step.log_probs):
            prefix, log_prob_of_prefix = live[row]
            longer, total = (*prefix, token), log_prob_of_prefix + log_prob
            if token == stepper.eos:
                support.sequences[prefix] = total
            elif token in stepper.excluded:
                support.excluded[longer] = total
            elif length == max_length:
                support.prefixes[longer] = total
            else:
                followed.append((longer, total))
                rows.append(row)
        if not followed:
            break
        if len(followed) > limit:
            raise ValueError(
                f"more than {limit} prefixes of {length + 1} tokens: too many to enumerate"
            )
        live = followed
        state = stepper.select(step.state, torch.tensor(rows))
    return support


def _possible_tokens(log_probs: Tensor) -> Iterator[tuple[int, int, float]]:
    """Yield row, token and log-probability of each positive probability of a step.

    Args:
        log_probs: `(rows, V)`.
    """
    for row in range(len(log_probs)):
        for token, log_prob in enumerate(log_probs[row].tolist()):
            if log_prob > -torch.inf:
                yield row, token, min(log_prob, 0.0)  # rounding may put it above 0
