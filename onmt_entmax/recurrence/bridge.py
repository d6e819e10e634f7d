"""OpenNMT-py's recurrent encoder with a bridge to the decoder that suits several layers."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from onmt_entmax.nn.parts import EncoderPart
from onmt_entmax.opennmt import RNNEncoder


class BridgedRNNEncoder(EncoderPart, RNNEncoder):
    """OpenNMT-py's `RNNEncoder` with a bridge that also suits several layers.

    The bridge is a linear layer, followed by a ReLU, from the last states of all layers to the
    decoder's first states. The bridge of OpenNMT-py 2.3.0 reads states ``(layers, batch, hidden)``
    as if they were ``(batch, layers, hidden)``, and so mixes the sentences of a batch. The weights
    are the same.
    """

    def _bridge(self, hidden: Any) -> Any:
        """Return the decoder's first states.

        Args:
            hidden: the encoder's last states, ``(layers * directions, batch, hidden)``: a pair of
                hidden and cell states for an LSTM, hidden states alone for other networks.

        Returns:
            The same kind of states, with the same shapes.
        """
        layers = self.rnn.num_layers

        def across_layers(linear: nn.Module, states: Tensor) -> Tensor:
            by_layer = states.unflatten(0, (layers, -1))  # (layers, directions, batch, hidden)
            # (directions, batch, layers * hidden)
            side_by_side = by_layer.permute(1, 2, 0, 3).flatten(2)
            result = linear(side_by_side).relu().unflatten(2, (layers, -1))
            return result.permute(2, 0, 1, 3).flatten(0, 1)

        if isinstance(hidden, tuple):
            return tuple(map(across_layers, self.bridge, hidden))
        return across_layers(self.bridge[0], hidden)
