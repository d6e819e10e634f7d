"""The input-feeding decoder prepared for the steps of a search."""

from __future__ import annotations

import torch
from torch import Tensor

from onmt_entmax.nn.products import PreparedWeight
from onmt_entmax.recurrence.backends.choice import backend_for
from onmt_entmax.recurrence.decoder import FastInputFeedRNNDecoder
from onmt_entmax.recurrence.source_memory import SourceMemory, Sources


class DecoderStep:
    """A decoder prepared for the steps of a search; later changes of its weights are ignored.

    The state of a row is one vector: the input feed, then the hidden states of all layers, then
    their cell states. Each token's part of the lowest layer's gates is computed once, if the
    vocabulary is not large.

    Args:
        decoder: with attention that can project, covered by the recurrence.
        vocabulary_size: of the target.
        dtype: of the factors of products, see `product`.
    """

    @torch.inference_mode()
    def __init__(
        self,
        decoder: FastInputFeedRNNDecoder,
        vocabulary_size: int,
        dtype: torch.dtype | None = None,
    ) -> None:
        self._dtype = dtype
        self._attention, self._embeddings = decoder.attn, decoder.embeddings
        self._hidden = decoder.hidden_size
        self._layers: list[tuple[PreparedWeight, Tensor]] = []
        for number, layer in enumerate(decoder.rnn.layers):
            bias, below = layer.bias_ih + layer.bias_hh, layer.weight_ih
            if number == 0:
                enter, below = below.split([below.size(1) - self._hidden, self._hidden], 1)
                self._lowest = PreparedWeight(enter, bias)
            matrix = torch.cat([below, layer.weight_hh], 1)
            self._layers.append((PreparedWeight(matrix, dtype=dtype), bias.unsqueeze(0)))
        self._table: Tensor | None = None
        # Of a larger vocabulary, each step of a search computes the parts of its tokens.
        if vocabulary_size * enter.size(0) * enter.element_size() <= 1 << 26:
            tokens = torch.arange(vocabulary_size, device=enter.device)
            self._table = self._lowest(self._embeddings(tokens.view(1, -1, 1))[0])
        from_query = decoder.attn.linear_out.weight[:, self._hidden :]
        self._from_query = PreparedWeight(from_query, dtype=dtype)

    def memory(self, bank: Tensor, lengths: Tensor) -> SourceMemory:
        """Return keys and values of a memory bank ``(source length, sentences, hidden)``."""
        keys, values, _ = self._attention.project(bank.transpose(0, 1).contiguous(), self._dtype)
        return SourceMemory(keys, values, lengths.to(bank.device, torch.int64))

    def first(self, hidden: Tensor, cell: Tensor, fed: Tensor) -> Tensor:
        """Return the first states of the rows.

        Args:
            hidden: ``(layers, rows, hidden)``.
            cell: likewise.
            fed: ``(rows, hidden)``.
        """
        return torch.cat([fed, *hidden, *cell], dim=1)

    def __call__(
        self, states: Tensor, tokens: Tensor, memory: SourceMemory, owners: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Append a token to each row.

        Args:
            states: ``(rows, (1 + 2 * layers) * hidden)``.
            tokens: ``(rows,)`` int64.
            memory: of the rows' sentences.
            owners: sentence of each row, ``(rows,)`` int64.

        Returns:
            Attentional vectors ``(rows, hidden)``, attention ``(rows, source length)``, and new
            states.
        """
        if self._table is not None:
            summand = self._table.index_select(0, tokens)
        else:
            summand = self._lowest(self._embeddings(tokens.view(1, -1, 1))[0])
        x, *parts = states.split(self._hidden, dim=1)
        count, hidden, cell = len(self._layers), [], []
        steps = backend_for(x)
        for layer, (multiply, bias) in enumerate(self._layers):
            gates = multiply.products(torch.cat([x, parts[layer]], 1))
            added = bias.expand_as(gates) if layer else summand
            _, x, *made = steps.cell_forward(gates, added, parts[count + layer].contiguous(), None)
            hidden.append(made[0])
            cell.append(made[1])
        alpha = self._attention.alpha
        sources = Sources(memory.keys, memory.values, memory.lengths, owners, alpha)
        weights = x.new_zeros(len(x), memory.keys.size(1))
        from_query = self._from_query.products(x)
        output = backend_for(x, sources).attend(sources, x, from_query, None, weights)
        return output, weights, torch.cat([output, *hidden, *cell], dim=1)
