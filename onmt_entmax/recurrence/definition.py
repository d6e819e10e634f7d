"""The LSTM encoder and the input-feeding decoder, as loops over the steps of one sentence.

This file says what they compute. `FastRNNEncoder`, `FastInputFeedRNNDecoder` and `DecoderStep` give
the same numbers and gradients for whole batches, faster; the tests compare them with these loops in
float64. For LSTMs that the fast forms do not cover, OpenNMT-py's own loop runs.

Sources: Hochreiter & Schmidhuber 1997 (LSTM); Luong et al. 2015 (attention, input feeding);
Bahdanau et al. 2015 (`mlp`); Peters et al. 2019 (entmax).
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from onmt_entmax.nn.attention import EntmaxGlobalAttention
from onmt_entmax.sparse import entmax


def encode(
    encoder: Any, tokens: Tensor, factors: Sequence[Tensor] = ()
) -> tuple[Tensor, Tensor, Tensor]:
    """Encode one sentence.

    Args:
        encoder: OpenNMT-py's `RNNEncoder` with an LSTM, or a subclass.
        tokens: ids ``(length,)``.
        factors: dropout masks, which are 0 or the factor of what is kept, for the outputs of all
            layers but the last, each ``(length, hidden)``; none outside of training.

    Returns:
        The memory bank ``(length, hidden)``, and the last hidden and cell states of all layers and
        directions, ``(layers * directions, hidden / directions)``.
    """
    x = encoder.embeddings(tokens.view(-1, 1, 1))[:, 0]  # (length, embedding)
    weights = iter(encoder.rnn.all_weights)
    last_states = []
    for layer in range(encoder.rnn.num_layers):
        if layer > 0 and factors:
            x = x * factors[layer - 1]
        directions = []
        for backwards in (False, True) if encoder.rnn.bidirectional else (False,):
            states, *last = run_layer(x, next(weights), backwards)
            directions.append(states)
            last_states.append(last)
        x = torch.cat(directions, 1)  # (length, hidden)
    hidden, cell = (torch.stack(states) for states in zip(*last_states, strict=True))
    if encoder.use_bridge:
        bridged = encoder._bridge((hidden.unsqueeze(1), cell.unsqueeze(1)))
        hidden, cell = (states.squeeze(1) for states in bridged)
    return x, hidden, cell


def run_layer(
    x: Tensor, weights: Sequence[Tensor], backwards: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Run one direction of a layer of the encoder.

    Args:
        x: inputs ``(length, in)``.
        weights: the weights and biases that `lstm_cell` takes, in its order.
        backwards: whether the last position comes first.

    Returns:
        Hidden states of all positions ``(length, hidden)``, and the last hidden and cell state,
        ``(hidden,)``.
    """
    hidden = cell = x.new_zeros(weights[1].size(1))
    states = []
    for vector in x.flip(0) if backwards else x:
        hidden, cell = lstm_cell(vector, hidden, cell, *weights)
        states.append(hidden)
    stacked = torch.stack(states)
    return stacked.flip(0) if backwards else stacked, hidden, cell


def decode(
    decoder: Any,
    tokens: Tensor,
    bank: Tensor,
    hidden: Tensor,
    cell: Tensor,
    factors: Sequence[Tensor] = (),
) -> Tensor:
    """Decode one sentence by teacher forcing.

    Args:
        decoder: OpenNMT-py's `InputFeedRNNDecoder` with an LSTM and `EntmaxGlobalAttention`, or a
            subclass.
        tokens: ids ``(steps,)``, the start symbol first.
        bank: the encoder's states ``(length, hidden)``.
        hidden: last hidden states of the encoder, see `encode`.
        cell: its last cell states, in the same shape.
        factors: dropout masks, as in `encode`, for the outputs of all layers but the last, then for
            the attentional vectors, each ``(steps, hidden)``; none outside of training.

    Returns:
        Attentional vectors ``(steps, hidden)``.
    """
    embedded = decoder.embeddings(tokens.view(-1, 1, 1))[:, 0]  # (steps, embedding)
    size = decoder.hidden_size
    # Both directions of a layer of the encoder, side by side, are one layer here.
    hiddens, cells = [*hidden.view(-1, size)], [*cell.view(-1, size)]
    fed = bank.new_zeros(size)
    outputs = []
    for step, vector in enumerate(embedded):
        x = torch.cat([vector, fed])  # (embedding + hidden,)
        for number, layer in enumerate(decoder.rnn.layers):
            if number > 0 and factors:
                x = x * factors[number - 1][step]
            weights = layer.weight_ih, layer.weight_hh, layer.bias_ih, layer.bias_hh
            hiddens[number], cells[number] = lstm_cell(x, hiddens[number], cells[number], *weights)
            x = hiddens[number]
        fed, _ = attend(decoder.attn, x, bank)  # input feeding: the next step reads it
        if factors:
            fed = fed * factors[-1][step]
        outputs.append(fed)
    return torch.stack(outputs)


def lstm_cell(
    x: Tensor,
    hidden: Tensor,
    cell: Tensor,
    input_weight: Tensor,
    hidden_weight: Tensor,
    input_bias: Tensor,
    hidden_bias: Tensor,
) -> tuple[Tensor, Tensor]:
    """Return the next hidden and cell state, ``(hidden,)``.

    Args:
        x: input ``(in,)``.
        hidden: hidden state ``(hidden,)``.
        cell: cell state ``(hidden,)``.
        input_weight: ``(4 * hidden, in)``.
        hidden_weight: ``(4 * hidden, hidden)``.
        input_bias: ``(4 * hidden,)``.
        hidden_bias: ``(4 * hidden,)``.
    """
    gates = input_weight @ x + input_bias + hidden_weight @ hidden + hidden_bias  # (4 * hidden,)
    input_gate, forget_gate, candidate, output_gate = gates.chunk(4)
    cell = forget_gate.sigmoid() * cell + input_gate.sigmoid() * candidate.tanh()
    return output_gate.sigmoid() * cell.tanh(), cell


def attend(attention: EntmaxGlobalAttention, query: Tensor, bank: Tensor) -> tuple[Tensor, Tensor]:
    """Return the attentional vector ``(hidden,)`` and the attention weights ``(length,)``.

    Args:
        attention: of type `dot`, `general` or `mlp`.
        query: ``(hidden,)``.
        bank: ``(length, hidden)``.
    """
    weights = entmax(scores(attention, query, bank), attention.alpha)  # (length,)
    context = weights @ bank  # (hidden,)
    output = attention.linear_out(torch.cat([context, query]))  # (hidden,)
    return output if attention.attn_type == "mlp" else output.tanh(), weights


def scores(attention: EntmaxGlobalAttention, query: Tensor, bank: Tensor) -> Tensor:
    """Return how well a query fits each source vector, ``(length,)``; arguments as in `attend`."""
    if attention.attn_type == "dot":
        return bank @ query
    if attention.attn_type == "general":
        return bank @ attention.linear_in(query)
    inner = attention.linear_query(query) + attention.linear_context(bank)  # (length, hidden)
    return attention.v(inner.tanh()).squeeze(1)
