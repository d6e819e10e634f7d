"""The bridge: a layer for each kind of state between the last states of encoder and decoder."""

import pytest
import torch
from torch import nn

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
    """Return an encoder with a bridge, which reads both directions or one."""
    torch.manual_seed(1)
    words = Embeddings(EMBEDDING, VOCABULARY, PAD)
    return kind(rnn_type, bidirectional, LAYERS, HIDDEN, 0.0, words, True).double()


@pytest.mark.parametrize("bidirectional", [False, True], ids=["one direction", "both directions"])
@pytest.mark.parametrize("rnn_type", ["LSTM", "GRU"])
def test_a_bridge_of_several_layers_keeps_sentences_apart(
    rnn_type: str, bidirectional: bool
) -> None:
    """Each direction of each sentence is one product with the states of all its layers."""
    encoder = bridged(BridgedRNNEncoder, rnn_type, bidirectional)
    source, _ = batch()
    with_bridge, *_ = encoder(source, SOURCE_LENGTHS)
    encoder.use_bridge = False
    without, *_ = encoder(source, SOURCE_LENGTHS)
    if rnn_type == "GRU":  # an LSTM has two kinds of states, (layers * directions, B, H) each
        with_bridge, without = (with_bridge,), (without,)
    directions = 2 if bidirectional else 1
    for layer, changed, states in zip(encoder.bridge, with_bridge, without, strict=True):
        for sentence in range(SENTENCES):
            for direction in range(directions):
                of_layers = slice(direction, None, directions)
                expected = layer(states[of_layers, sentence].flatten()).relu()
                torch.testing.assert_close(changed[of_layers, sentence].flatten(), expected)


@pytest.mark.parametrize("fixed", [False, True], ids=["packed", "fixed"])
def test_the_fast_encoder_has_the_same_bridge(fixed: bool) -> None:
    fast, stock = bridged(FastRNNEncoder), bridged(BridgedRNNEncoder)
    stock.load_state_dict(fast.state_dict())
    fast.fixed_shapes = fixed
    source, _ = batch()
    ours, *_ = fast(source, SOURCE_LENGTHS)
    theirs, *_ = stock(source, SOURCE_LENGTHS)
    torch.testing.assert_close(ours, theirs)
