"""The decoder of a recurrent model without OpenNMT-py's step: the same numbers, sooner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from onmt_entmax.modules.recurrence.decoding import DecoderStep, Seats, SourceMemory
from onmt_entmax.search.expansion import Ints
from onmt_entmax.search.stepper import Step

if TYPE_CHECKING:
    from onmt_entmax.modules.output_decoding import PreparedOutput


@dataclass(frozen=True)
class RecurrentState:
    """The rows of a search: vectors, and whose source each attends to."""

    vectors: Tensor
    """(rows, size), see `DecoderStep`"""
    memory: SourceMemory
    owner: Ints
    """(rows,) place in `memory` of each row's sentence"""
    seats: list[Seats] = field(default_factory=list, repr=False)
    """Once it was needed; shared by the states that agree on `owner`."""

    def seating(self) -> Seats:
        """Where the rows sit, see `Seats`."""
        if not self.seats:
            self.seats.append(self._seated())
        return self.seats[0]

    def _seated(self) -> Seats:
        counts = np.bincount(self.owner, minlength=len(self.memory))
        width = int(counts.max())
        starts = np.cumsum(counts) - counts
        order = np.argsort(self.owner, kind="stable")
        seat = np.empty_like(self.owner)
        seat[order] = np.arange(len(order)) - starts[self.owner[order]]
        index = self.owner * width + seat
        if len(index) == len(self.memory) * width and np.array_equal(index, np.arange(len(index))):
            return Seats(None, width)
        return Seats(torch.from_numpy(index).to(self.vectors.device), width)

    def select(self, rows: Tensor) -> RecurrentState:
        """The state of `rows` (new rows,) int64, on the CPU."""
        vectors = self.vectors.index_select(0, rows.to(self.vectors.device))
        owner = self.owner[rows.numpy()]
        if np.array_equal(owner, self.owner):
            return replace(self, vectors=vectors)
        return replace(self, vectors=vectors, owner=owner, seats=[]).compact(0.5)

    def compact(self, share: float = 1.0) -> RecurrentState:
        """The same state without the sentences that no row belongs to, where not more than this
        share of them are used: copying the others has its price."""
        counts = np.bincount(self.owner, minlength=len(self.memory))
        used = np.flatnonzero(counts)
        if len(used) == len(counts) or len(used) > share * len(counts):
            return self
        places = np.zeros(len(counts), dtype=np.int64)
        places[used] = np.arange(len(used))
        memory = self.memory.select(torch.from_numpy(used).to(self.vectors.device))
        return replace(self, memory=memory, owner=places[self.owner], seats=[])


class RecurrentDecoding:
    """Runs the decoder and the output layer of a model with prepared weights.

    Args:
        step: of its decoder.
        output: of its output layer.
        attention: whether steps return attention.
    """

    def __init__(self, step: DecoderStep, output: PreparedOutput, attention: bool) -> None:
        self._step, self._output, self._attention = step, output, attention

    def start(self, state: dict[str, Any], bank: Tensor, lengths: Tensor) -> RecurrentState:
        """The state of one row for each sentence.

        Args:
            state: of OpenNMT-py's decoder after `init_state`.
            bank: (source length, sentences, hidden).
            lengths: (sentences,)
        """
        hidden, cell = state["hidden"]
        vectors = self._step.first(hidden, cell, state["input_feed"][0])
        return RecurrentState(vectors, self._step.memory(bank, lengths), np.arange(len(lengths)))

    def step(self, state: RecurrentState, tokens: Tensor) -> Step:
        """Append `tokens` (rows,) int64 to the rows."""
        tokens = tokens.to(state.vectors.device)
        hidden, weights, vectors = self._step(state.vectors, tokens, state.memory, state.seating())
        lengths = None
        if self._attention:
            lengths = state.memory.lengths.cpu()[torch.from_numpy(state.owner)]
        return Step(
            distribution=self._output(hidden),
            attention=weights if self._attention else None,
            state=replace(state, vectors=vectors),
            source_lengths=lengths,
        )

    def join(self, states: Sequence[RecurrentState]) -> RecurrentState:
        """One state of all rows."""
        states = [state.compact() for state in states]
        starts = np.cumsum([0, *(len(state.memory) for state in states)])
        return RecurrentState(
            torch.cat([state.vectors for state in states]),
            SourceMemory.join([state.memory for state in states]),
            np.concatenate([s.owner + n for s, n in zip(states, starts[:-1], strict=True)]),
        )
