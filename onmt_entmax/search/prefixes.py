"""Prefixes of a search: as linked lists, as rows of the decoder, and with their continuations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from onmt_entmax.search.arrays import Floats, Ints
from onmt_entmax.search.expansion import Expansion


class Prefix(NamedTuple):
    """A prefix, as its last token and a link to the prefix before it, which others may share."""

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

    @classmethod
    def of_empty_prefixes(
        cls, decoder_state: Any, sentence_index: Ints, bos: int, automaton_states: Ints
    ) -> Rows:
        """Return rows with the empty prefix, one for each of some sentences.

        Args:
            decoder_state: the stepper's state, one row a sentence.
            sentence_index: `(rows,)` index of each sentence.
            bos: id of the start symbol.
            automaton_states: `(rows,)` state in which each sentence's automaton starts.
        """
        count = len(sentence_index)
        return cls(
            decoder_state,
            sentence_index,
            prefixes=[Prefix(None, bos)] * count,
            log_probs=np.zeros(count),
            lengths=np.zeros(count, dtype=np.int64),
            automaton_states=automaton_states,
        )

    def followed_by(self, others: Rows, decoder_state: Any) -> Rows:
        """Return these rows and then others; `decoder_state` is the stepper's for all of them."""
        return Rows(
            decoder_state,
            sentence_index=np.concatenate([self.sentence_index, others.sentence_index]),
            prefixes=self.prefixes + others.prefixes,
            log_probs=np.concatenate([self.log_probs, others.log_probs]),
            lengths=np.concatenate([self.lengths, others.lengths]),
            automaton_states=np.concatenate([self.automaton_states, others.automaton_states]),
        )


@dataclass(frozen=True)
class Continuations:
    """The continuations of some rows; a search may keep them and follow them later."""

    parents: Rows
    """The rows, with the decoder's state after the step."""
    attention: Sequence[Tensor | None]
    """`(source length,)` of each row, where the stepper returns it"""
    options: Expansion
    """The candidates, as tokens and rows of `parents`."""
    log_probs: Floats
    """`(candidates,)` log-probability of the prefix that each candidate of `options` makes"""

    def keeping(self, positions: Ints) -> Continuations:
        """Return the continuations without some candidates.

        The caller must have counted these as dropped: `options.unlisted` is no bound on them.

        Args:
            positions: `(n,)` ascending positions of the candidates that stay.
        """
        options = self.options
        return replace(
            self,
            options=options._replace(
                row=options.row[positions],
                token=options.token[positions],
                log_prob=options.log_prob[positions],
            ),
            log_probs=self.log_probs[positions],
        )
