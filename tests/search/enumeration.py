"""Brute-force enumeration of the support, the reference for every search."""

from dataclasses import dataclass
from typing import Any

import torch

from onmt_entmax.search.stepper import Stepper


@dataclass(frozen=True)
class EnumeratedSupport:
    """Every sequence of positive probability up to a length."""

    strings: dict[tuple[int, ...], float]
    """Log-probability of each sequence with its end symbol; the tokens are without it."""
    prefixes: dict[tuple[int, ...], float]
    """Log-probability of each prefix one token longer than the limit."""
    excluded: dict[tuple[int, ...], float]
    """Log-probability of each prefix that ends in a token of `Stepper.excluded`."""


@torch.inference_mode()
def enumerate_support(
    stepper: Stepper, batch: Any, max_length: int, limit: int
) -> EnumeratedSupport:
    """Follow every token of positive probability, one level of the tree at a time.

    Args:
        stepper: the model.
        batch: one sentence.
        max_length: longest string, without its end symbol.
        limit: most prefixes to hold at once.

    Raises:
        ValueError: if a level of the tree has more than `limit` prefixes.
    """
    state = stepper.start(batch)
    live: list[tuple[tuple[int, ...], float]] = [((), 0.0)]
    support = EnumeratedSupport({}, {}, {})
    for length in range(max_length + 1):
        last = torch.tensor([prefix[-1] if prefix else stepper.bos for prefix, _ in live])
        step = stepper.step(state, last)
        longer, rows = [], []
        for row, (prefix, log_prob) in enumerate(live):
            for token, value in enumerate(step.log_probs[row].tolist()):
                if value == -torch.inf:
                    continue
                total = log_prob + min(value, 0.0)
                if token == stepper.eos:
                    support.strings[prefix] = total
                elif token in stepper.excluded:
                    support.excluded[(*prefix, token)] = total
                elif length == max_length:
                    support.prefixes[(*prefix, token)] = total
                else:
                    longer.append(((*prefix, token), total))
                    rows.append(row)
        if not longer:
            break
        if len(longer) > limit:
            raise ValueError(
                f"more than {limit} prefixes of {length + 1} tokens: too many to enumerate"
            )
        live, state = longer, stepper.select(step.state, torch.tensor(rows))
    return support
