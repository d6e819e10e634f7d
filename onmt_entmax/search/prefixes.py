"""Prefixes of a search: as linked lists, as rows of the decoder, and with their continuations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from onmt_entmax.search.arrays import Floats, Ints
from onmt_entmax.search.expansion import Expansion


class Prefix(NamedTuple):
    """A prefix as its last token and the prefix before it, which others may share."""

    before: Prefix | None
    """None: this is the empty prefix, and `token` the start symbol."""
    token: int
    attention: Tensor | None = None
    """`(source length,)` of the step that gave the token, where the stepper returns it."""

    def path(self) -> list[Prefix]:
        """Return the prefixes from the first token to this one."""
        path, node = [], self
        while node.before is not None:
            path.append(node)
            node = node.before
        return path[::-1]

    def tokens(self) -> tuple[int, ...]:
        """Return the token ids, without the start symbol."""
        return tuple(prefix.token for prefix in self.path())

    def all_attention(self, last: Tensor | None) -> Tensor | None:
        """Return the attention of all steps `(steps, source length)`, if there is any.

        Args:
            last: `(source length,)` of the end symbol's step.
        """
        steps = [prefix.attention for prefix in self.path()] + [last]
        present = [attention for attention in steps if attention is not None]
        return torch.stack(present) if present else None


@dataclass(frozen=True)
class Rows:
    """Prefixes that the decoder computes together, those of one sentence side by side."""

    decoder_state: Any
    """The stepper's state, with these rows."""
    sentence_index: Ints
    """`(rows,)` index of each prefix's sentence among the active ones"""
    prefixes: list[Prefix]
    """The prefix of each row."""
    log_probs: Floats
    """`(rows,)` log-probability of each prefix, the sum over its tokens"""
    lengths: Ints
    """`(rows,)` tokens of each prefix, without the start symbol"""
    automaton_states: Ints
    """`(rows,)` state of the sentence's automaton after each prefix; 0 without an automaton"""


@dataclass(frozen=True)
class Continuations:
    """What may follow some rows; they may be kept and followed later."""

    parents: Rows
    """The rows, with the decoder's state after the step."""
    attention: Sequence[Tensor | None]
    """`(source length,)` of each row, where the stepper returns it"""
    options: Expansion
    """The candidates, as tokens and rows of `parents`."""
    log_probs: Floats
    """`(candidates,)` log-probability of the prefix that each candidate of `options` makes"""
