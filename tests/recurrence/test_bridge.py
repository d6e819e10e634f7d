"""The bridge: linear layers from the encoder's last states to the decoder's first states.

There is one for hidden states, and in an LSTM another one for cell states.
"""

import pytest
import torch
from torch import Tensor, nn

from onmt_entmax.opennmt import Embeddings
from onmt_entmax.recurrence.bridge import BridgedRNNEncoder
from onmt_entmax.recurrence.encoder import FastRNNEncoder
from tests.recurrence.networks import (
    EMBEDDING,
    HIDDEN,
    PAD,
    SENTENCES,
    SOURCE_LENGTHS,
    VOCABULARY,
    batch,
)

LAYERS = 3


def bridged(kind: type[nn.Module], rnn_type: str = "LSTM", bidirectional: bool = True) -> nn.Module:
    """Return an encoder with a bridge, in float64, which reads both directions or one."""
    torch.manual_seed(1)
    words = Embeddings(EMBEDDING, VOCABULARY, PAD)
    return kind(rnn_type, bidirectional, LAYERS, HIDDEN, 0.0, words, True).double()


def last_states(encoder: nn.Module) -> tuple[Tensor, ...]:
    """Return the encoder's last states of the batch, ``(layers * directions, sentences, hidden)``.

    These are hidden and cell states of an LSTM, and hidden states of other networks.
    """
    source, _ = batch()
    states, *_ = encoder(source, SOURCE_LENGTHS)
    return states if isinstance(states, tuple) else (states,)


def bridge_by_sentence(linear: nn.Module, states: Tensor) -> Tensor:
    """Return the states after a bridge, by its definition.

    For each direction of each sentence, the states of all layers, side by side, are the input of
    the linear layer.

    Args:
        linear: the linear layer.
        states: ``(layers * directions, sentences, hidden)``, as the result.
    """
    directions = len(states) // LAYERS
    result = torch.empty_like(states)
    for sentence in range(SENTENCES):
        for direction in range(directions):
            of_layers = states[direction::directions, sentence]  # (layers, hidden)
            changed = linear(of_layers.flatten()).relu()
            result[direction::directions, sentence] = changed.view_as(of_layers)
    return result


@pytest.mark.parametrize("bidirectional", [False, True], ids=["one direction", "both directions"])
@pytest.mark.parametrize("rnn_type", ["LSTM", "GRU"])
def test_a_bridge_of_several_layers_keeps_sentences_apart(
    rnn_type: str, bidirectional: bool
) -> None:
    encoder = bridged(BridgedRNNEncoder, rnn_type, bidirectional)
    with_bridge = last_states(encoder)
    encoder.use_bridge = False
    expected = tuple(map(bridge_by_sentence, encoder.bridge, last_states(encoder)))
    torch.testing.assert_close(with_bridge, expected)


@pytest.mark.parametrize("fixed", [False, True], ids=["packed", "fixed"])
def test_the_fast_encoder_has_the_same_bridge(fixed: bool) -> None:
    fast, plain = bridged(FastRNNEncoder), bridged(BridgedRNNEncoder)
    plain.load_state_dict(fast.state_dict())
    fast.fixed_shapes = fixed
    torch.testing.assert_close(last_states(fast), last_states(plain))
