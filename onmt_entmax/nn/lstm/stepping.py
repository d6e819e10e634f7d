"""One step of the input-feeding decoder for many prefixes, as a search takes it: no gradients.

What does not depend on the prefix is computed beforehand: what a token adds to the gates, once for
the vocabulary; the keys and values of a sentence's source (see `attention`), once for
all prefixes and steps. What remains is one product a layer, one for the attention, and the mixing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from onmt_entmax.nn.lstm.cells import double_candidate_, lstm_cell, tanh
from onmt_entmax.nn.products import PreparedWeight, product
from onmt_entmax.opennmt import InputFeedRNNDecoder
from onmt_entmax.sparse.functional import entmax

# Bytes that the table of what tokens add to the gates may take; a larger vocabulary's tokens are
# multiplied step by step.
_TABLE = 1 << 26


@dataclass(frozen=True)
class SourceMemory:
    """What the attention needs of some sentences' sources, one copy for each sentence."""

    keys: Tensor
    """(sentences, source length, hidden)"""
    values: Tensor
    """(sentences, source length, hidden)"""
    padding: Tensor
    """(sentences, 1, source length): -inf at padded positions, 0 elsewhere"""
    lengths: Tensor
    """(sentences,)"""

    def __len__(self) -> int:
        return len(self.lengths)

    def select(self, sentences: Tensor) -> SourceMemory:
        """The memory of chosen sentences (chosen,) int64."""
        lengths = self.lengths.index_select(0, sentences)
        longest = int(lengths.max())
        return SourceMemory(
            self.keys[:, :longest].index_select(0, sentences),
            self.values[:, :longest].index_select(0, sentences),
            self.padding[:, :, :longest].index_select(0, sentences),
            lengths,
        )

    @staticmethod
    def join(parts: Sequence[SourceMemory]) -> SourceMemory:
        """The sentences of all parts, in order."""
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
class Seats:
    """Where each row sits among its sentence's: attention reads a source once for all its rows."""

    index: Tensor | None
    """(rows,) place in (sentences * width); None where that is the row's own number"""
    width: int
    """seats of a sentence"""

    def spread(self, rows: Tensor, sentences: int) -> Tensor:
        """(rows, size) to (sentences, width, size), zeros at empty seats."""
        if self.index is not None:
            empty = rows.new_zeros(sentences * self.width, rows.size(1))
            rows = empty.index_copy_(0, self.index, rows)
        return rows.view(sentences, self.width, -1)

    def gather(self, spread: Tensor) -> Tensor:
        """(sentences, width, size) to (rows, size)."""
        flat = spread.flatten(0, 1)
        return flat if self.index is None else flat.index_select(0, self.index)


class DecoderStep:
    """The weights of a decoder, ready for single steps; later changes of them have no effect.

    The state of a row is one vector: what is fed, then the hidden states, then the cell states of
    all layers.

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
        if vocabulary_size * lowest.size(0) * lowest.element_size() <= _TABLE:
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
        rows: Tensor = self._embeddings(tokens.view(1, -1, 1))[0]
        return rows

    def memory(self, bank: Tensor, lengths: Tensor) -> SourceMemory:
        """Keys and values of a memory bank (source length, sentences, hidden)."""
        bank = bank.transpose(0, 1).contiguous()
        flat = bank.flatten(0, 1)
        keys = bank if self._match is None else product(flat, self._match).view_as(bank)
        places = torch.arange(bank.size(1), device=bank.device)
        padded = places >= lengths.to(bank.device).unsqueeze(1)
        padding = bank.new_zeros(padded.shape).masked_fill_(padded, -torch.inf).unsqueeze(1)
        return SourceMemory(keys, product(flat, self._context).view_as(bank), padding, lengths)

    def first(self, hidden: Tensor, cell: Tensor, fed: Tensor) -> Tensor:
        """The rows' first states.

        Args:
            hidden: (layers, rows, hidden).
            cell: likewise.
            fed: (rows, hidden).
        """
        return torch.cat([fed, *hidden, *cell], dim=1)

    def __call__(
        self, states: Tensor, tokens: Tensor, memory: SourceMemory, seats: Seats
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Append a token to each row.

        Args:
            states: (rows, (1 + 2 * layers) * hidden).
            tokens: (rows,) int64.
            memory: of the rows' sentences.
            seats: of the rows.

        Returns:
            Attentional vectors (rows, hidden), attention (rows, source length), new states.
        """
        size, count = self._hidden, len(self._layers)
        if self._table is not None:
            entering = self._table.index_select(0, tokens)
        else:
            entering = self._lowest(self._embedded(tokens))
        parts = states.split(size, dim=1)
        inputs = states[:, : 2 * size].contiguous()  # what was fed, and the lowest layer's state
        hidden: list[Tensor] = []
        cell: list[Tensor] = []
        for layer, multiply in enumerate(self._layers):
            if layer > 0:
                inputs = torch.cat([hidden[-1], parts[1 + layer]], dim=1)
            gates = multiply(inputs, entering if layer == 0 else None)
            top, inside, _ = lstm_cell(gates, parts[1 + count + layer])
            hidden.append(top)
            cell.append(inside)
        output, weights = self._attend(hidden[-1], memory, seats)
        return output, weights, torch.cat([output, *hidden, *cell], dim=1)

    def _attend(self, query: Tensor, memory: SourceMemory, seats: Seats) -> tuple[Tensor, Tensor]:
        """Attentional vectors and attention of the queries (rows, hidden)."""
        queries = seats.spread(query, len(memory))
        scores = torch.baddbmm(memory.padding, queries, memory.keys.transpose(1, 2))
        weights = entmax(seats.gather(scores), self._alpha)
        mixed = torch.bmm(seats.spread(weights, len(memory)), memory.values)
        return tanh(self._from_query(query, seats.gather(mixed))), weights
