"""OpenNMT-py's LSTM encoder, run over packed or fixed steps."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from onmt_entmax.nn.products import linear
from onmt_entmax.opennmt import RNNEncoder
from onmt_entmax.recurrence.deferred import anchor
from onmt_entmax.recurrence.dropout import dropout_mask
from onmt_entmax.recurrence.embedding import _embed, _pick
from onmt_entmax.recurrence.layer import _Layer, _Step
from onmt_entmax.recurrence.steps import Steps


class BridgedRNNEncoder(RNNEncoder):
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


class FastRNNEncoder(BridgedRNNEncoder):
    """OpenNMT-py's `RNNEncoder` with the recurrence of this module.

    Constructor and weights are the same, and so are results but for the bridge of several layers.
    It is for LSTMs without positions; `build_model` takes `BridgedRNNEncoder` for all others.

    Attributes:
        matmul_dtype: of the factors of products with weights, `torch.bfloat16` or None for the
            weights' own; sums and states keep the weights' type.
        fixed_shapes: whether no shape depends on the lengths; None: on all devices but CPUs.
    """

    matmul_dtype: torch.dtype | None = None
    fixed_shapes: bool | None = None

    def forward(self, src: Tensor, lengths: Tensor | None = None) -> tuple[Any, Tensor, Any]:
        """Encode a batch, as OpenNMT-py's `RNNEncoder.forward`.

        Args:
            src: ids ``(src_len, batch, nfeats)``.
            lengths: ``(batch,)``; on a CPU longest first.

        Returns:
            Last states, memory bank ``(src_len, batch, hidden)``, and the lengths.

        Raises:
            ValueError: on a CPU, if the lengths are not sorted, or one is 0.
        """
        self._check_args(src, lengths)
        length, batch, _ = src.shape
        fixed = src.device.type != "cpu" if self.fixed_shapes is None else self.fixed_shapes
        assert lengths is not None
        sizes = lengths.to(src.device)
        if not fixed and not (bool((sizes.diff() <= 0).all()) and int(sizes[-1]) > 0):
            raise ValueError("sort a batch by source length, longest first, without empty sources")
        steps = Steps.of(sizes, length, fixed)
        tokens = src.flatten(0, 1)
        states, rows = _embed(self.embeddings, tokens if fixed else tokens[steps.places], fixed)
        finals = []
        # `matmul_dtype` sets the precision, not autocast: states stay exact.
        with torch.autocast("cuda" if src.is_cuda else "cpu", enabled=False):
            for layer in range(self.rnn.num_layers):
                if layer:
                    mask = dropout_mask(tuple(states.shape), self.rnn, states)
                    states = states if mask is None else states * mask
                states, final = self._layer(layer, steps, states, rows, batch)
                rows = None
                finals.append(final)
            # Each sentence is contiguous in memory, as attention reads it.
            place = steps.places % batch * length + steps.places // batch
            states = states if steps.live is None else states * steps.live
            bank = states.new_zeros(batch * length, states.size(1)).index_copy(0, place, states)
            last = tuple(torch.cat(parts) for parts in zip(*finals, strict=True))
        if self.use_bridge:
            last = self._bridge(last)
        return last, bank.view(batch, length, -1).transpose(0, 1), lengths

    def _layer(
        self, layer: int, steps: Steps, x: Tensor, rows: Tensor | None, batch: int
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Run a layer.

        Returns:
            Packed states ``(total, directions * hidden)``, and the last hidden and cell states
            ``(directions, batch, hidden)``.
        """
        entering, recurrent = [], []
        count = 2 if self.rnn.bidirectional else 1
        for enter, weight, *biases in self.rnn.all_weights[layer * count : (layer + 1) * count]:
            entered = linear(x, enter, biases[0] + biases[1], self.matmul_dtype)
            entering.append(_pick(entered, rows))
            recurrent.append(weight)
        shape: tuple[int, ...] = (batch, self.rnn.hidden_size)
        if steps.live is not None:
            # All directions in one product. Padding forgets nothing and takes nothing in.
            keep = x.new_zeros(4, self.rnn.hidden_size)
            keep[0], keep[1] = -1e4, 1e4  # filled on the device: graphs record no copies from a CPU
            keep = keep.flatten()
            entering = [torch.where(steps.live, entered, keep) for entered in entering]
            entering[1:] = map(steps.reversed, entering[1:])
            entering, recurrent = [torch.stack(entering)], [torch.stack(recurrent)]
            shape = (count, *shape)
        outputs, hiddens, cells = [], [], []
        for at, (entered, matrix) in enumerate(zip(entering, recurrent, strict=True)):
            weight = _Layer(matrix, entered, steps.sizes, self.matmul_dtype)
            held = anchor(weight, matrix, entered)
            hidden = cell = x.new_zeros(shape)
            order, made = range(len(steps.sizes))[:: -1 if at else 1], []
            for number in order:
                output, hidden, cell = _Step.apply(weight, held, number, None, None, hidden, cell)
                made.append(output)
            outputs.append(torch.cat(made[:: -1 if at else 1], -2))
            hiddens.append(hidden)
            cells.append(cell)
        if steps.live is not None:
            outputs, hiddens, cells = ([*part[0]] for part in (outputs, hiddens, cells))
            hiddens[0] = outputs[0].index_select(0, steps.last)
            outputs[1:] = map(steps.reversed, outputs[1:])
        return torch.cat(outputs, 1), (torch.stack(hiddens), torch.stack(cells))
