"""The input-feeding decoder prepared for the steps of a search.

`FastInputFeedRNNDecoder.search_step` makes a `DecoderStep`, and `search/recurrent_decoding.py` runs
it: `memory` once for a batch of sources, `first` for the first states, then a call for each step. A
call computes a step of `definition.decode`. It is faster since its weights are laid out once, and
each token's part of the lowest layer's gates is looked up in a table.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from onmt_entmax.nn.prepared_weight import PreparedWeight
from onmt_entmax.opennmt import InputFeedRNNDecoder
from onmt_entmax.recurrence.backends.choice import backend_for
from onmt_entmax.recurrence.source_memory import RowSources, SourceMemory

# The most bytes of a table with each token's part of the lowest layer's gates: 64 MiB, which is
# 14,000 tokens at a hidden size of 300. For a larger vocabulary, each step computes the parts of
# its tokens.
_LARGEST_TABLE = 1 << 26


class StepResult(NamedTuple):
    """What a step computes for each row."""

    vectors: Tensor
    """Attentional vectors, which the output layer reads, ``(rows, hidden)``."""
    attention: Tensor
    """Attention weights ``(rows, source length)``."""
    states: Tensor
    """States of the rows after the step, ``(rows, (1 + 2 * layers) * hidden)``."""


class _TokenGates:
    """Each token's part of the lowest layer's gates, with that layer's bias.

    Args:
        embeddings: the embeddings of target tokens, as a module.
        weight: the part of the lowest layer's weight for embeddings, ``(4 * hidden, embedding)``.
        bias: the sum of the lowest layer's biases, ``(4 * hidden,)``.
        vocabulary_size: size of the target vocabulary.
    """

    def __init__(
        self, embeddings: nn.Module, weight: Tensor, bias: Tensor, vocabulary_size: int
    ) -> None:
        self._embeddings, self._weight = embeddings, PreparedWeight(weight, bias)
        self._table: Tensor | None = None  # (vocabulary, 4 * hidden)
        if vocabulary_size * bias.nbytes <= _LARGEST_TABLE:
            self._table = self._compute(torch.arange(vocabulary_size, device=weight.device))

    def __call__(self, tokens: Tensor) -> Tensor:
        """Return the gates' part ``(tokens, 4 * hidden)`` of tokens ``(tokens,)`` int64."""
        if self._table is None:
            return self._compute(tokens)
        return self._table.index_select(0, tokens)

    def _compute(self, tokens: Tensor) -> Tensor:
        """Return the gates' part ``(tokens, 4 * hidden)`` of tokens, without the table."""
        return self._weight(self._embeddings(tokens.view(1, -1, 1))[0])


class _PreparedLayer(NamedTuple):
    """A layer; its weight multiplies the lower layer's output and the hidden state together."""

    weight: PreparedWeight
    """``(4 * hidden, 2 * hidden)``"""
    bias: Tensor | None
    """``(1, 4 * hidden)``; None in the lowest layer, whose bias `_TokenGates` adds."""

    @classmethod
    def of(
        cls, weight_ih: Tensor, weight_hh: Tensor, bias: Tensor | None, dtype: torch.dtype | None
    ) -> _PreparedLayer:
        """Return a prepared layer.

        Args:
            weight_ih: weight for the vector from below, ``(4 * hidden, hidden)``.
            weight_hh: weight for the hidden state, ``(4 * hidden, hidden)``.
            bias: the sum of both biases, ``(4 * hidden,)``; None in the lowest layer.
            dtype: see `DecoderStep`.
        """
        weight = PreparedWeight(torch.cat([weight_ih, weight_hh], 1), dtype=dtype)
        return cls(weight, None if bias is None else bias.unsqueeze(0))


class DecoderStep:
    """A decoder prepared for the steps of a search; later changes of its weights are ignored.

    The state of a row is one vector: the input feed, followed by the hidden states of all layers
    and then by their cell states.

    Args:
        decoder: a `FastInputFeedRNNDecoder` with attention that can project.
        vocabulary_size: size of the target vocabulary.
        dtype: type of the factors of products, such as `torch.bfloat16`; None: the weights' type.
            The table of gates always has the weights' type, since it is computed once.
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
        self._hidden = decoder.hidden_size
        lowest, *higher = decoder.rnn.layers
        # Inputs of the lowest layer are the token's embedding, then the input feed.
        sizes = [lowest.weight_ih.size(1) - self._hidden, self._hidden]
        token_weight, feed_weight = lowest.weight_ih.split(sizes, 1)
        bias = lowest.bias_ih + lowest.bias_hh
        self._token_gates = _TokenGates(decoder.embeddings, token_weight, bias, vocabulary_size)
        self._layers = [_PreparedLayer.of(feed_weight, lowest.weight_hh, None, dtype)]
        for layer in higher:
            bias = layer.bias_ih + layer.bias_hh
            self._layers.append(_PreparedLayer.of(layer.weight_ih, layer.weight_hh, bias, dtype))
        query_weight = decoder.attn.linear_out.weight[:, self._hidden :]
        self._project_query = PreparedWeight(query_weight, dtype=dtype)

    def memory(self, bank: Tensor, lengths: Tensor) -> SourceMemory:
        """Return keys and values of a batch of sources.

        Args:
            bank: memory bank ``(source length, sentences, hidden)``.
            lengths: lengths of the sources, ``(sentences,)``.
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
    ) -> StepResult:
        """Compute a step of the rows, each after one more token.

        Args:
            states: ``(rows, (1 + 2 * layers) * hidden)``.
            tokens: the token that each row appends, ``(rows,)`` int64.
            memory: the sources of the rows' sentences.
            owners: sentence of each row, ``(rows,)`` int64.
        """
        layers = len(self._layers)
        fed, *before = states.split(self._hidden, dim=1)
        hidden_before, cell_before = before[:layers], before[layers:]
        hidden: list[Tensor] = []
        cell: list[Tensor] = []
        x = fed  # the vector that enters a layer from below, (rows, hidden)
        token_gates = self._token_gates(tokens)
        backend = backend_for(x)
        for number, layer in enumerate(self._layers):
            inputs = torch.cat([x, hidden_before[number]], 1)  # (rows, 2 * hidden)
            gates = layer.weight.multiply_padded(inputs)  # (rows, 4 * hidden)
            _activations, x, hidden_after, cell_after = backend.cell_forward(
                gates,
                summand=token_gates if layer.bias is None else layer.bias.expand_as(gates),
                cell=cell_before[number].contiguous(),
                factors=None,  # no dropout
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
        return StepResult(vectors, attention, torch.cat([vectors, *hidden, *cell], dim=1))
