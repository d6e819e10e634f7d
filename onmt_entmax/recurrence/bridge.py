"""OpenNMT-py's recurrent encoder with a bridge to the decoder that suits several layers."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from onmt_entmax.nn.parts import EncoderPart
from onmt_entmax.opennmt import RNNEncoder


class BridgedRNNEncoder(EncoderPart, RNNEncoder):
    """OpenNMT-py's `RNNEncoder` with a bridge that also suits several layers.

    The bridge is a linear layer from the last states of all layers to those of the decoder. That of
    OpenNMT-py 2.3.0 reads states ``(layers, batch, hidden)`` as if they were ``(batch, layers,
    hidden)``, and so mixes the sentences of a batch. Weights are the same.
    """

    def _bridge(self, hidden: Any) -> Any:
        """Return the first states of the decoder, products of those of all layers.

        Args:
            hidden: hidden and cell states of an LSTM, or the hidden states of others; each
                ``(layers * directions, batch, hidden)``, as the result.
        """
        layers = self.rnn.num_layers

        def mixed(linear: nn.Module, states: Tensor) -> Tensor:
            by_layer = states.unflatten(0, (layers, -1))  # (layers, directions, batch, hidden)
            side_by_side = by_layer.permute(1, 2, 0, 3).flatten(2)  # (directions, batch, ...)
            result = linear(side_by_side).relu().unflatten(2, (layers, -1))
            return result.permute(2, 0, 1, 3).flatten(0, 1)

        if isinstance(hidden, tuple):
            return tuple(map(mixed, self.bridge, hidden))
        return mixed(self.bridge[0], hidden)
