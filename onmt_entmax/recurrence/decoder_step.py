"""The input-feeding decoder prepared for the steps of a search.

`FastInputFeedRNNDecoder.search_step` makes it, and `search/recurrent_decoding.py` runs it: `memory`
once for a batch of sources, `first` for the first states, then a call for each step. What a call
computes is a step of `definition.decode`, with weights laid out once, and each token's part of the
lowest layer's gates looked up in a table.
"""

from __future__ import annotations

import torch
from torch import Tensor

from onmt_entmax.nn.prepared_weight import PreparedWeight
from onmt_entmax.opennmt import InputFeedRNNDecoder
from onmt_entmax.recurrence.backends.choice import backend_for
from onmt_entmax.recurrence.source_memory import RowSources, SourceMemory

# Bytes of a table with each token's part of the lowest layer's gates. Of a larger vocabulary, each
# step computes the parts of its tokens.
_LARGEST_TABLE = 1 << 26


class DecoderStep:
    """A decoder prepared for the steps of a search; later changes of its weights are ignored.

    The state of a row is one vector: the input feed, then the hidden states of all layers, then
    their cell states.

    Args:
        decoder: a `FastInputFeedRNNDecoder` with attention that can project.
        vocabulary_size: of the target.
        dtype: of the factors of products, such as `torch.bfloat16`; None is that of the weights.
            The table of gates always has the type of the weights: it is computed once.
    """

    @torch.inference_mode()
    def __init__(
        self,
        decoder: InputFeedRNNDecoder,
        vocabulary_size: int,
        dtype: torch.dtype | None = None,
    ) -> None:
        self._dtype = dtype
        self._attention = decoder.attn
        self._embeddings = decoder.embeddings
        self._hidden = decoder.hidden_size
        lowest = decoder.rnn.layers[0]
        # Its inputs are the token's embedding, then the input feed.
        sizes = [lowest.weight_ih.size(1) - self._hidden, self._hidden]
        of_tokens, of_feed = lowest.weight_ih.split(sizes, 1)
        self._token_gates = PreparedWeight(of_tokens, lowest.bias_ih + lowest.bias_hh)
        self._layers: list[tuple[PreparedWeight, Tensor]] = []  # weight and bias, (1, 4 * hidden)
        for number, layer in enumerate(decoder.rnn.layers):
            of_input = layer.weight_ih if number else of_feed
            matrix = torch.cat([of_input, layer.weight_hh], 1)  # (4 * hidden, 2 * hidden)
            bias = (layer.bias_ih + layer.bias_hh).unsqueeze(0)
            self._layers.append((PreparedWeight(matrix, dtype=dtype), bias))
        self._table: Tensor | None = None  # (vocabulary, 4 * hidden)
        size = vocabulary_size * of_tokens.size(0) * of_tokens.element_size()
        if size <= _LARGEST_TABLE:
            self._table = self._gates_of(torch.arange(vocabulary_size, device=of_tokens.device))
        query_weight = decoder.attn.linear_out.weight[:, self._hidden :]
        self._project_query = PreparedWeight(query_weight, dtype=dtype)

    def _gates_of(self, tokens: Tensor) -> Tensor:
        """Return the tokens' part of the lowest layer's gates, ``(tokens, 4 * hidden)``."""
        return self._token_gates(self._embeddings(tokens.view(1, -1, 1))[0])

    def memory(self, bank: Tensor, lengths: Tensor) -> SourceMemory:
        """Return keys and values of a batch of sources.

        Args:
            bank: memory bank ``(source length, sentences, hidden)``.
            lengths: of the sources, ``(sentences,)``.
        """
        keys, values, _ = self._attention.project(bank.transpose(0, 1).contiguous(), self._dtype)
        return SourceMemory(keys, values, lengths.to(bank.device, torch.int64))

    def first(self, hidden: Tensor, cell: Tensor, fed: Tensor) -> Tensor:
        """Return the first states of the rows, ``(rows, (1 + 2 * layers) * hidden)``.

        Args:
            hidden: ``(layers, rows, hidden)``.
            cell: ``(layers, rows, hidden)``.
            fed: input feed ``(rows, hidden)``.
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
        if self._table is None:
            token_gates = self._gates_of(tokens)
        else:
            token_gates = self._table.index_select(0, tokens)
        layers = len(self._layers)
        fed, *before = states.split(self._hidden, dim=1)
        hidden_before, cell_before = before[:layers], before[layers:]
        hidden: list[Tensor] = []
        cell: list[Tensor] = []
        x = fed  # what enters a layer from below, (rows, hidden)
        backend = backend_for(x)
        for number, (weight, bias) in enumerate(self._layers):
            inputs = torch.cat([x, hidden_before[number]], 1)  # (rows, 2 * hidden)
            gates = weight.multiply_padded(inputs)  # (rows, 4 * hidden)
            _, x, hidden_after, cell_after = backend.cell_forward(
                gates,
                # The lowest layer's bias is in the tokens' part.
                summand=bias.expand_as(gates) if number else token_gates,
                cell=cell_before[number].contiguous(),
                factors=None,
            )
            hidden.append(hidden_after)
            cell.append(cell_after)
        sources = RowSources(memory, owners, self._attention.alpha)
        attention = x.new_zeros(len(x), memory.keys.size(1))
        vectors = backend_for(x, sources).attend(
            sources,
            query=x,
            projected=self._project_query.multiply_padded(x),
            factors=None,
            weights=attention,
        )
        return vectors, attention, torch.cat([vectors, *hidden, *cell], dim=1)
