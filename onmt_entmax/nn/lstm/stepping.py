"""Single steps of the input-feeding decoder for the prefixes of a search, without gradients.

Whatever does not depend on the prefix is computed once: each token's part of the gates, and the
keys and values of each source (see `RecurrentAttention`). A step is then one product a layer, one
for the attention, and the context vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import pad

from onmt_entmax.nn.lstm.cells import double_candidate_, lstm_cell, tanh
from onmt_entmax.nn.products import PreparedWeight, product
from onmt_entmax.opennmt import InputFeedRNNDecoder
from onmt_entmax.sparse.functional import entmax

# Largest table, in bytes, of the vocabulary's parts of the gates. Beyond it, each step computes
# those of its tokens.
_TABLE_BYTES = 1 << 26


@dataclass(frozen=True)
class SourceMemory:
    """Keys and values of some sentences' sources, one copy for each sentence."""

    keys: Tensor
    """``(sentences, source length, hidden)``"""
    values: Tensor
    """``(sentences, source length, hidden)``"""
    padding: Tensor
    """``(sentences, 1, source length)``: -inf at padded positions, 0 elsewhere"""
    lengths: Tensor
    """``(sentences,)``, on the CPU"""

    def __len__(self) -> int:
        return len(self.lengths)

    def select(self, sentences: Tensor) -> SourceMemory:
        """Return the memory of chosen sentences ``(chosen,)`` int64, on the CPU."""
        lengths = self.lengths.index_select(0, sentences)
        longest = int(lengths.max())
        sentences = sentences.to(self.keys.device)
        return SourceMemory(
            self.keys[:, :longest].index_select(0, sentences),
            self.values[:, :longest].index_select(0, sentences),
            self.padding[:, :, :longest].index_select(0, sentences),
            lengths,
        )

    @staticmethod
    def join(parts: Sequence[SourceMemory]) -> SourceMemory:
        """Concatenate the sentences of all parts."""
        longest = max(part.keys.size(1) for part in parts)
        more = [longest - part.keys.size(1) for part in parts]
        pairs = list(zip(parts, more, strict=True))
        return SourceMemory(
            torch.cat([pad(part.keys, (0, 0, 0, n)) if n else part.keys for part, n in pairs]),
            torch.cat([pad(part.values, (0, 0, 0, n)) if n else part.values for part, n in pairs]),
            torch.cat([pad(part.padding, (0, n), value=-torch.inf) for part, n in pairs]),
            torch.cat([part.lengths for part in parts]),
        )


@dataclass(frozen=True)
class BatchSlots:
    """Groups rows by sentence in a padded batch: attention reads a source once for all its rows."""

    index: Tensor | None
    """``(rows,)`` slot in (sentences * width) of each row; None if row i has slot i"""
    width: int
    """slots of each sentence"""

    @staticmethod
    def of(owner: NDArray[np.int64], sentences: int, device: torch.device) -> BatchSlots:
        """Return the slots of rows, given the place of each row's sentence, ``(rows,)``."""
        counts = np.bincount(owner, minlength=sentences)
        width = int(counts.max())
        starts = np.cumsum(counts) - counts
        order = np.argsort(owner, kind="stable")
        slot = np.empty_like(owner)
        slot[order] = np.arange(len(order)) - starts[owner[order]]
        index = owner * width + slot
        if len(index) == sentences * width and np.array_equal(index, np.arange(len(index))):
            return BatchSlots(None, width)
        return BatchSlots(torch.from_numpy(index).to(device), width)

    def spread(self, rows: Tensor, sentences: int) -> Tensor:
        """Return ``(rows, size)`` as ``(sentences, width, size)``, zeros in empty slots."""
        if self.index is not None:
            empty = rows.new_zeros(sentences * self.width, rows.size(1))
            rows = empty.index_copy_(0, self.index, rows)
        return rows.view(sentences, self.width, -1)

    def gather(self, spread: Tensor) -> Tensor:
        """Return ``(sentences, width, size)`` as ``(rows, size)``."""
        flat = spread.flatten(0, 1)
        return flat if self.index is None else flat.index_select(0, self.index)


class DecoderStep:
    """A decoder prepared for single steps; later changes of its weights are ignored.

    The state of a row is one vector: the input feed, then the hidden states of all layers, then
    their cell states.

    Args:
        decoder: with `dot` or `general` attention, covered by the fast recurrence.
        vocabulary_size: of the target.
        alpha: of the attention.
    """

    @torch.inference_mode()
    def __init__(self, decoder: InputFeedRNNDecoder, vocabulary_size: int, alpha: float) -> None:
        self._alpha, self._embeddings = alpha, decoder.embeddings
        self._layers: list[PreparedWeight] = []
        size = decoder.embeddings.embedding_size
        for number, layer in enumerate(decoder.rnn.layers):
            bias = double_candidate_(layer.bias_ih + layer.bias_hh)
            below = layer.weight_ih[:, size:] if number == 0 else layer.weight_ih
            both = double_candidate_(torch.cat([below, layer.weight_hh], dim=1))
            self._layers.append(PreparedWeight(both, bias if number > 0 else None))
            if number == 0:
                lowest = double_candidate_(layer.weight_ih[:, :size].clone())
                self._lowest = PreparedWeight(lowest, bias)
        self._table: Tensor | None = None
        if vocabulary_size * lowest.size(0) * lowest.element_size() <= _TABLE_BYTES:
            tokens = torch.arange(vocabulary_size, device=lowest.device)
            self._table = self._lowest(self._embedded(tokens))
        self._hidden = decoder.hidden_size
        self._context, query = (
            part.contiguous() for part in decoder.attn.linear_out.weight.split(self._hidden, dim=1)
        )
        self._from_query = PreparedWeight(query)
        self._match: Tensor | None = None
        if decoder.attn.attn_type == "general":
            self._match = decoder.attn.linear_in.weight.t().contiguous()

    def _embedded(self, tokens: Tensor) -> Tensor:
        """Return the embeddings of tokens ``(rows,)``."""
        rows: Tensor = self._embeddings(tokens.view(1, -1, 1))[0]
        return rows

    def memory(self, bank: Tensor, lengths: Tensor) -> SourceMemory:
        """Return keys and values of a memory bank ``(source length, sentences, hidden)``."""
        bank = bank.transpose(0, 1).contiguous()
        flat = bank.flatten(0, 1)
        keys = bank if self._match is None else product(flat, self._match).view_as(bank)
        places = torch.arange(bank.size(1), device=bank.device)
        padded = places >= lengths.to(bank.device).unsqueeze(1)
        padding = bank.new_zeros(padded.shape).masked_fill_(padded, -torch.inf).unsqueeze(1)
        values = product(flat, self._context).view_as(bank)
        return SourceMemory(keys, values, padding, lengths.cpu())

    def first(self, hidden: Tensor, cell: Tensor, fed: Tensor) -> Tensor:
        """Return the first states of the rows.

        Args:
            hidden: ``(layers, rows, hidden)``.
            cell: likewise.
            fed: ``(rows, hidden)``.
        """
        return torch.cat([fed, *hidden, *cell], dim=1)

    def __call__(
        self, states: Tensor, tokens: Tensor, memory: SourceMemory, slots: BatchSlots
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Append a token to each row.

        Args:
            states: ``(rows, (1 + 2 * layers) * hidden)``.
            tokens: ``(rows,)`` int64.
            memory: of the rows' sentences.
            slots: of the rows.

        Returns:
            Attentional vectors ``(rows, hidden)``, attention ``(rows, source length)``, and new
            states.
        """
        size, count = self._hidden, len(self._layers)
        if self._table is not None:
            entering = self._table.index_select(0, tokens)
        else:
            entering = self._lowest(self._embedded(tokens))
        parts = states.split(size, dim=1)
        inputs = states[:, : 2 * size].contiguous()  # the input feed, and the lowest layer's state
        hidden: list[Tensor] = []
        cell: list[Tensor] = []
        for layer, multiply in enumerate(self._layers):
            if layer > 0:
                inputs = torch.cat([hidden[-1], parts[1 + layer]], dim=1)
            gates = multiply(inputs, entering if layer == 0 else None)
            top, inside, _ = lstm_cell(gates, parts[1 + count + layer])
            hidden.append(top)
            cell.append(inside)
        output, weights = self._attend(hidden[-1], memory, slots)
        return output, weights, torch.cat([output, *hidden, *cell], dim=1)

    def _attend(
        self, query: Tensor, memory: SourceMemory, slots: BatchSlots
    ) -> tuple[Tensor, Tensor]:
        """Return attentional vectors and attention of queries ``(rows, hidden)``."""
        queries = slots.spread(query, len(memory))
        scores = torch.baddbmm(memory.padding, queries, memory.keys.transpose(1, 2))
        weights = entmax(slots.gather(scores), self._alpha)
        context = torch.bmm(slots.spread(weights, len(memory)), memory.values)
        return tanh(self._from_query(query, slots.gather(context))), weights
