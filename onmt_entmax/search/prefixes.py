"""Prefixes as a search holds them: with their sentence, as rows of the decoder, and continued."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from onmt_entmax.search.arrays import Floats, Ints
from onmt_entmax.search.automaton import Automaton
from onmt_entmax.search.certificate import Hypothesis, Proof
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


class Start(NamedTuple):
    """Where the search of a sentence began, so that it can start again with a full beam."""

    decoder_state: Any
    """The state of all sentences of its batch before the first step."""
    row: int
    """The sentence's row in this state."""


@dataclass(eq=False)
class Sentence:
    """A sentence that is searched.

    Up to `start` the fields are the request, and do not change. The search fills in the others:
    hypotheses, their proof and the cost.
    """

    number: int
    """In the order in which a search gets its sentences."""
    forced: tuple[int, ...] = ()
    """Token ids that its output must start with."""
    automaton: Automaton | None = None
    """What its output must satisfy, if anything."""
    banned: frozenset[int] = frozenset()
    """Token ids that its output may not have, besides those of the constraints of all."""
    beam: int = 1
    """Live prefixes that it may have."""
    source_length: int = 0
    """In tokens; 0 if no length reward reads it."""
    start: Start | None = None
    """None if it cannot start again."""
    never: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    """`(tokens,)` token ids that its output never has, for any reason; set when it is added."""
    best: list[Hypothesis] = field(default_factory=list)
    """The finished hypotheses that are returned, best score first."""
    unfinished: Hypothesis | None = None
    """The most probable prefix that the length limit cut."""
    proof: Proof = field(default_factory=Proof)
    """What is known of its sequences so far, for the certificate."""
    rows: int = 0
    """Prefixes that the decoder computed."""
    support: int = 0
    """Next tokens of positive probability, summed over these."""

    def score(self, rank: int) -> float:
        """Return the score of the hypothesis of a rank, from 1; -inf if fewer have finished."""
        return self.best[rank - 1].score if len(self.best) >= rank else -math.inf

    def started_again(self, beam: int) -> Sentence:
        """Return the request with another beam; of the search so far only the cost stays."""
        return Sentence(
            number=self.number,
            forced=self.forced,
            automaton=self.automaton,
            banned=self.banned,
            beam=beam,
            source_length=self.source_length,
            rows=self.rows,
            support=self.support,
        )


@dataclass(frozen=True)
class Rows:
    """Prefixes that the decoder computes together, those of one sentence side by side."""

    decoder_state: Any
    """The stepper's state, with these rows."""
    sentence: Ints
    """`(rows,)` index of each prefix's sentence among the active ones"""
    prefix: list[Prefix]
    """The tokens of each row."""
    log_prob: Floats
    """`(rows,)` of each prefix, the sum over its tokens"""
    length: Ints
    """`(rows,)` tokens, without the start symbol"""
    automaton_state: Ints
    """`(rows,)` after the prefix, of its sentence's automaton; 0 without one"""


@dataclass(frozen=True)
class Continuations:
    """What may follow some rows; they may be kept and followed later."""

    parents: Rows
    """The rows, with the decoder's state after the step."""
    attention: Sequence[Tensor | None]
    """`(source length,)` of each row, where the stepper returns it"""
    options: Expansion
    """The candidates, as tokens and rows of `parents`."""
    log_prob: Floats
    """`(candidates,)` of the prefix that each candidate of `options` makes"""
