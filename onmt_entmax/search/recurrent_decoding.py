"""Steps of a search with an input-feeding LSTM, whose weights are prepared once.

It computes the numbers that `OpenNMTDecoding` computes, faster.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from onmt_entmax.recurrence.decoder_step import DecoderStep
from onmt_entmax.recurrence.source_memory import SourceMemory
from onmt_entmax.search.arrays import Ints
from onmt_entmax.search.stepper import OutputFunction, Step

# A copy of the sources without unused ones pays once half of the sentences are done.
_COPIED_SHARE = 0.5


@dataclass(frozen=True)
class RecurrentState:
    """The rows of a search with an input-feeding LSTM."""

    vectors: Tensor
    """`(rows, size)`, see `DecoderStep`"""
    memory: SourceMemory
    owner: Ints
    """`(rows,)` position in `memory` of each row's sentence"""


def _without_unused(
    memory: SourceMemory, owner: Ints, share: float = 1.0
) -> tuple[SourceMemory, Ints]:
    """Return the sources without those of sentences that no row belongs to, and new owners.

    Args:
        memory: the sources.
        owner: `(rows,)` position in `memory` of each row's sentence.
        share: if more than this share of the sentences have rows, both arguments are returned as
            they are, since copying would take longer than it saves.
    """
    used = np.flatnonzero(np.bincount(owner, minlength=len(memory)))
    if len(used) == len(memory) or len(used) > share * len(memory):
        return memory, owner
    return memory.select(torch.from_numpy(used)), np.searchsorted(used, owner)


class RecurrentDecoding:
    """Runs an input-feeding LSTM decoder with prepared weights; its steps may return attention."""

    def __init__(self, step: DecoderStep, output: OutputFunction, attention: bool) -> None:
        self._step, self._output, self._attention = step, output, attention

    def start(self, state: dict[str, Any], bank: Tensor, lengths: Tensor) -> RecurrentState:
        """Return a state with one row for each sentence; see `OpenNMTDecoding.start`."""
        hidden, cell = state["hidden"]
        vectors = self._step.first(hidden, cell, state["input_feed"][0])
        memory = self._step.memory(bank, lengths)
        return RecurrentState(vectors, memory, np.arange(len(lengths)))

    def step(self, state: RecurrentState, tokens: Tensor) -> Step:
        """Append `tokens` `(rows,)` int64 to the rows."""
        tokens = tokens.to(state.vectors.device)
        owners = torch.from_numpy(state.owner).to(state.vectors.device)
        after = self._step(state.vectors, tokens, state.memory, owners)
        lengths = None
        if self._attention:
            lengths = state.memory.lengths[owners].cpu()
        return Step(
            distribution=self._output(after.vectors),
            attention=after.attention.cpu() if self._attention else None,
            state=replace(state, vectors=after.states),
            source_lengths=lengths,
        )

    def select(self, state: RecurrentState, rows: Tensor) -> RecurrentState:
        """Return the state of `rows` `(new rows,)` int64, on the CPU."""
        vectors = state.vectors.index_select(0, rows.to(state.vectors.device))
        owner = state.owner[rows.numpy()]
        if np.array_equal(owner, state.owner):
            return replace(state, vectors=vectors)
        return RecurrentState(vectors, *_without_unused(state.memory, owner, _COPIED_SHARE))

    def join(self, states: Sequence[RecurrentState]) -> RecurrentState:
        """Return one state of all rows."""
        memories, owners = zip(
            *(_without_unused(state.memory, state.owner) for state in states), strict=True
        )
        starts = np.cumsum([0, *map(len, memories)])[:-1]
        return RecurrentState(
            torch.cat([state.vectors for state in states]),
            SourceMemory.join(memories),
            np.concatenate([owner + start for owner, start in zip(owners, starts, strict=True)]),
        )
