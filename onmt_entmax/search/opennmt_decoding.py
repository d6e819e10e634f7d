"""Steps of a search with any of OpenNMT-py's decoders, which keep their state inside the module.

The state is taken out after each step, so that a search can select rows and return to earlier
states. `decoder_sources.py` stores the source once per sentence.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from onmt_entmax.search.decoder_sources import SharedSources, SourceBatch
from onmt_entmax.search.stepper import OutputFunction, Step

# The entries of a Transformer layer's cache that depend on the source alone.
_SOURCE_ENTRIES = ("memory_keys", "memory_values")


@dataclass(frozen=True)
class DecoderState:
    """The state of an OpenNMT-py decoder, taken out of the module that normally keeps it."""

    module_state: dict[str, Any]
    """What the module keeps in its attribute `state`, without what is in `sources`."""
    sources: SharedSources
    length: int = 0
    """Tokens appended to each row so far, `bos` included."""


class OpenNMTDecoding:
    """Runs a decoder of OpenNMT-py, which keeps its state inside the module.

    Each call works with a copy of the module that shares its weights, so that several threads may
    use one model.
    """

    def __init__(self, decoder: Any, output: OutputFunction, attention: bool) -> None:
        self._decoder, self._output, self._attention = decoder, output, attention

    def start(self, state: dict[str, Any], bank: Tensor, lengths: Tensor) -> DecoderState:
        """Return a state with one row for each sentence.

        Args:
            state: the state of OpenNMT-py's decoder after `init_state`.
            bank: `(source length, sentences, hidden)`.
            lengths: `(sentences,)` of the sources.
        """
        module_state = _copy_dicts(state)
        stored = SourceBatch(bank, lengths, module_state.pop("src", None))
        return DecoderState(module_state, SharedSources(stored, torch.arange(len(lengths))))

    def step(self, state: DecoderState, tokens: Tensor) -> Step:
        """Append `tokens` `(rows,)` int64 to the rows."""
        decoder, source = with_empty_state(self._decoder), state.sources.per_row
        decoder.state = _copy_dicts(state.module_state)
        if source.src is not None:
            decoder.state["src"] = source.src
        for layer, tensors in source.cache.items():
            decoder.state["cache"][layer].update(tensors)
        hidden, attentions = decoder(
            tokens.to(source.lengths.device).view(1, -1, 1),
            source.memory_bank,
            memory_lengths=source.lengths,
            step=state.length,
        )
        wanted = self._attention and "std" in attentions
        attention = attentions["std"][0].cpu() if wanted else None
        return Step(
            distribution=self._output(hidden[0]),
            attention=attention,
            state=self._take_state(decoder, state),
            source_lengths=None if attention is None else source.lengths,
        )

    def _take_state(self, decoder: Any, before: DecoderState) -> DecoderState:
        """Return the state that a step has left in the decoder."""
        module_state = _copy_dicts(decoder.state)
        length = before.length + 1
        stored = before.sources.stored
        if not stored.is_for_transformer:
            return replace(before, module_state=module_state, length=length)
        # The source, and the keys and values computed from it, belong to `sources` alone.
        del module_state["src"]
        cache = _remove_source_cache(module_state)
        if stored.cache:  # from the first step, with the same keys and values
            return replace(before, module_state=module_state, length=length)
        # At the first step each column has one row, so these keys and values are one per column.
        # From now on the decoder reads only the size of the memory bank.
        stored = replace(stored, memory_bank=stored.memory_bank[:1], cache=cache)
        return DecoderState(module_state, SharedSources(stored, before.sources.owner), length)

    def select(self, state: DecoderState, rows: Tensor) -> DecoderState:
        """Return the state of `rows` `(new rows,)` int64, on the CPU.

        The decoder's own method selects its state, `SharedSources` selects the sources.
        """
        decoder = with_empty_state(self._decoder)
        decoder.state = {"src": None, **_copy_dicts(state.module_state)}
        index = rows.to(state.sources.stored.lengths.device)
        decoder.map_state(lambda tensor, dim: tensor.index_select(dim, index))
        module_state = _copy_dicts(decoder.state)
        module_state.pop("src")
        return replace(state, module_state=module_state, sources=state.sources.select(rows))

    def join(self, states: Sequence[DecoderState]) -> DecoderState:
        """Return one state of all rows of recurrent states.

        The states may be of different lengths, which recurrent decoders do not read. Networks here
        have no coverage attention.
        """
        hidden = zip(*(state.module_state["hidden"] for state in states), strict=True)
        module_state = {
            "hidden": tuple(torch.cat(layers, 1) for layers in hidden),
            "input_feed": torch.cat([state.module_state["input_feed"] for state in states], 1),
            "coverage": None,
        }
        sources = SharedSources.join([state.sources for state in states])
        return DecoderState(module_state, sources, max(state.length for state in states))


def _remove_source_cache(module_state: dict[str, Any]) -> dict[str, dict[str, Tensor]]:
    """Remove keys and values of the source from a Transformer's state; return them by layer."""
    return {
        layer: {name: tensors.pop(name) for name in _SOURCE_ENTRIES}
        for layer, tensors in module_state["cache"].items()
    }


def with_empty_state(decoder: Any) -> Any:
    """Return a copy of a decoder with the same weights and an empty state of its own."""
    decoder = copy(decoder)
    decoder.state = {}
    return decoder


def _copy_dicts(tree: dict[str, Any]) -> dict[str, Any]:
    """Copy nested dicts but not tensors: OpenNMT-py's decoders never overwrite these."""
    return {
        key: _copy_dicts(value) if isinstance(value, dict) else value for key, value in tree.items()
    }
