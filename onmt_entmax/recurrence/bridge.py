"""OpenNMT-py's recurrent encoder with a bridge to the decoder that suits several layers."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from onmt_entmax.nn.parts import EncoderPart
from onmt_entmax.opennmt import RNNEncoder


class BridgedRNNEncoder(EncoderPart, RNNEncoder):
    """OpenNMT-py's `RNNEncoder` with a bridge that also suits several layers.

    The bridge of OpenNMT-py 2.3.0 reads states ``(layers, batch, hidden)`` as if they were
    ``(batch, layers, hidden)``, and so mixes the sentences of a batch. Weights are the same.
    """

    def _bridge(self, hidden: Any) -> Any:
        """Return states ``(layers * directions, batch, hidden)``, all layers of a direction mixed.

        Args:
            hidden: hidden and cell states of an LSTM, or the hidden states of others.
        """
        count = self.rnn.num_layers

        def mixed(layer: nn.Module, states: Tensor) -> Tensor:
            layers_last = states.unflatten(0, (count, -1)).permute(1, 2, 0, 3)
            result = layer(layers_last.flatten(2)).relu()
            return result.unflatten(2, (count, -1)).permute(2, 0, 1, 3).flatten(0, 1)

        if isinstance(hidden, tuple):
            return tuple(map(mixed, self.bridge, hidden))
        return mixed(self.bridge[0], hidden)
