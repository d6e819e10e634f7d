"""OpenNMT-py's LSTM encoder with one autograd node a layer, on packed rows.

A layer multiplies its inputs once for all positions, a step multiplies the previous state only,
and each weight's gradient is one product over all steps. `PreparedEncoder` serves a search.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from onmt_entmax.nn.lstm.cells import Repeats, Steps, double_candidate_, dropout_mask, embed
from onmt_entmax.nn.lstm.native import make_cells
from onmt_entmax.nn.products import PreparedWeight, product, weight_gradient
from onmt_entmax.opennmt import RNNEncoder


class FastRNNEncoder(RNNEncoder):
    """OpenNMT-py's `RNNEncoder` whose LSTM is one autograd node a layer.

    Constructor, weights and results are the same. Other kinds of RNN run OpenNMT-py's own code.

    Attributes:
        matmul_dtype: see `FastInputFeedRNNDecoder`.
    """

    matmul_dtype: torch.dtype | None = None

    def forward(self, src: Tensor, lengths: Tensor | None = None) -> tuple[Any, Tensor, Any]:
        """Encode a batch, as OpenNMT-py's `RNNEncoder.forward`.

        Args:
            src: ids ``(src_len, batch, nfeats)``.
            lengths: ``(batch,)``, longest first; on a GPU, reading them synchronises. None: all
                are src_len.

        Returns:
            Last states, memory bank ``(src_len, batch, hidden)``, and the lengths.

        Raises:
            ValueError: if the lengths are not sorted, or one is 0.
        """
        if not self.is_covered():
            return super().forward(src, lengths)
        steps, index = self._packing(src, lengths)
        states, repeats = embed(self.embeddings, src.flatten(0, 1)[index])
        lasts = []
        for layer, weights in enumerate(self.layer_weights()):
            if layer > 0 and self.rnn.training:
                mask = dropout_mask(tuple(states.shape), self.rnn.dropout, states)
                states = states if mask is None else states * mask
            # `matmul_dtype` sets the precision, not autocast: states stay exact.
            with torch.autocast(states.device.type, enabled=False):
                states, last = _LSTMLayer.apply(steps, repeats, self.matmul_dtype, states, *weights)
            repeats = Repeats(steps.total)
            lasts.append(last)
        return *self._results(steps, index, states, lasts), lengths

    def _packing(self, src: Tensor, lengths: Tensor | None) -> tuple[Steps, Tensor]:
        """Return the rows of each step, and the packed positions in the flattened `src`."""
        self._check_args(src, lengths)
        length, batch, _ = src.size()
        sizes = [length] * batch if lengths is None else lengths.tolist()
        if sorted(sizes, reverse=True) != sizes or sizes[-1] < 1:
            raise ValueError("sort a batch by source length, longest first, without empty sources")
        steps = Steps.of(sizes)
        return steps, steps.index(torch.arange(batch, device=src.device))

    def _results(
        self, steps: Steps, index: Tensor, states: Tensor, lasts: list[Tensor]
    ) -> tuple[Any, Tensor]:
        """Return last states and memory bank, given packed states and each layer's last states."""
        batch, length = steps.batch, len(steps.sizes)
        final = tuple(torch.cat(lasts, dim=1).unbind(0))
        if self.use_bridge:
            final = self._bridge(final)
        # Each sentence is contiguous in memory, as attention reads it.
        position = index % batch * length + index.div(batch, rounding_mode="floor")
        bank = states.new_zeros(batch * length, states.size(1)).index_copy(0, position, states)
        return final, bank.view(batch, length, -1).transpose(0, 1)

    def prepared(self, vocabulary_size: int) -> PreparedEncoder | None:
        """Return the encoder with its present weights, or None if it is not covered."""
        return PreparedEncoder(self, vocabulary_size) if self.is_covered() else None

    def layer_weights(self) -> list[list[Tensor]]:
        """Return the weights of each layer, both directions together."""
        directions = 2 if self.rnn.bidirectional else 1
        parts = self.rnn.all_weights
        return [
            [weight for part in parts[at : at + directions] for weight in part]
            for at in range(0, len(parts), directions)
        ]

    def is_covered(self) -> bool:
        """Return whether the fast recurrence covers this encoder."""
        return (
            type(self.rnn) is nn.LSTM
            and self.rnn.bias
            and self.rnn.proj_size == 0
            and not self.embeddings.position_encoding
        )


class _Direction:
    """One direction of one layer.

    Args:
        steps: active rows.
        repeats: the input row of each packed position.
        reverse: takes the steps from last to first; a row starts from zeros at its last position.
        weights: `weight_ih, weight_hh, bias_ih, bias_hh`.
        dtype: of the products, see `PreparedWeight`.
    """

    def __init__(
        self,
        steps: Steps,
        repeats: Repeats,
        reverse: bool,
        weights: tuple[Tensor, ...],
        dtype: torch.dtype | None,
    ) -> None:
        enter, recurrent, *biases = weights
        self._steps, self._repeats, self._dtype = steps, repeats, dtype
        self._order = in_order(steps, reverse)
        self._enter = double_candidate_(enter.to(dtype or enter.dtype, copy=True))
        self._recurrent = double_candidate_(recurrent.to(dtype or enter.dtype, copy=True))
        self._bias = double_candidate_(biases[0] + biases[1])

    def run(self, x: Tensor, outputs: Tensor, last: tuple[Tensor, Tensor]) -> None:
        """Run over all steps.

        Args:
            x: ``(rows, in)``.
            outputs: receives the hidden states, ``(total, hidden)``.
            last: receive the last hidden and cell states, ``(batch, hidden)`` each.
        """
        entering = self._repeats.spread(product(x, self._enter, self._bias, self._dtype))
        multiply = PreparedWeight(self._recurrent, result=x.dtype)
        self._cells = make_cells(self._steps, self._order, multiply, entering, outputs, last)
        for at in range(len(self._order)):
            self._cells.forward(at)
        self._cells.end()

    def run_backward(
        self, x: Tensor, grad_outputs: Tensor, grad_last: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, list[Tensor]]:
        """Return gradients of the inputs ``(rows, in)`` and of the weights.

        Args:
            x: ``(rows, in)``.
            grad_outputs: ``(total, hidden)``.
            grad_last: of the last hidden and cell states, ``(batch, hidden)`` each; overwritten.
        """
        back = PreparedWeight(self._recurrent.t(), result=x.dtype)
        self._cells.start_backward(back, *grad_last)
        for at in reversed(range(len(self._order))):
            rows = self._steps.rows(self._order[at])
            self._cells.backward(at, grad_outputs[rows], None)
        recurrent, bias = self._cells.finish_backward()
        grad = self._cells.gates_gradient(self._repeats.places is not None)
        grad = self._repeats.collect(grad)
        enter = double_candidate_(weight_gradient(grad, x, self._dtype, x.dtype))
        grad_x = product(grad, self._enter.t(), dtype=self._dtype, result=x.dtype)
        return grad_x, [enter, recurrent, bias, bias]


def in_order(steps: Steps, reverse: bool) -> range:
    """Return the order in which a direction takes the steps."""
    order = range(len(steps.sizes))
    return order[::-1] if reverse else order


class _LSTMLayer(torch.autograd.Function):
    """A layer of one or two directions as one autograd node.

    ``apply(steps, repeats, dtype, x, *weights)`` with inputs ``(rows, in)`` and four weights for
    each direction. Returns packed states ``(total, directions * hidden)``, and the last hidden and
    cell states ``(2, directions, batch, hidden)``.
    """

    @staticmethod
    def forward(
        ctx: Any,
        steps: Steps,
        repeats: Repeats,
        dtype: torch.dtype | None,
        x: Tensor,
        *weights: Tensor,
    ) -> tuple[Tensor, Tensor]:
        count, hidden = len(weights) // 4, weights[1].size(1)
        directions = [
            _Direction(steps, repeats, bool(at), weights[4 * at : 4 * at + 4], dtype)
            for at in range(count)
        ]
        outputs = x.new_empty(steps.total, count * hidden)
        last = x.new_zeros(2, count, steps.batch, hidden)
        for at, (direction, part) in enumerate(
            zip(directions, outputs.chunk(count, dim=1), strict=True)
        ):
            direction.run(x, part, (last[0, at], last[1, at]))
        ctx.directions = directions
        ctx.save_for_backward(x)
        return outputs, last

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_outputs: Tensor, grad_last: Tensor) -> tuple[Tensor | None, ...]:
        directions: list[_Direction] = ctx.directions
        (x,) = ctx.saved_tensors
        grad_last = grad_last.clone(memory_format=torch.contiguous_format)
        grad_x = torch.zeros_like(x)
        grads: list[Tensor] = []
        parts = grad_outputs.contiguous().chunk(len(directions), dim=1)
        for at, (direction, part) in enumerate(zip(directions, parts, strict=True)):
            ends = grad_last[0, at], grad_last[1, at]
            with torch.autocast(x.device.type, enabled=False):
                share, grad_weights = direction.run_backward(x, part, ends)
            grad_x += share
            grads += grad_weights
        return None, None, None, grad_x, *grads


# Largest table, in bytes, of the vocabulary's parts of the lowest layer's gates.
_TABLE_BYTES = 1 << 26


class PreparedEncoder:
    """An encoder prepared for evaluation; later changes of the weights are ignored.

    Each token's part of the lowest layer's gates is computed once, if the vocabulary is not large.

    Args:
        encoder: in evaluation mode, covered by the fast recurrence.
        vocabulary_size: of the source.
    """

    @torch.inference_mode()
    def __init__(self, encoder: FastRNNEncoder, vocabulary_size: int) -> None:
        self._encoder = encoder
        self._layers: list[list[tuple[PreparedWeight, PreparedWeight]]] = []
        for weights in encoder.layer_weights():
            directions = []
            for at in range(0, len(weights), 4):
                enter, recurrent, *biases = weights[at : at + 4]
                bias = double_candidate_(biases[0] + biases[1])
                directions.append(
                    (
                        PreparedWeight(double_candidate_(enter.clone()), bias),
                        PreparedWeight(double_candidate_(recurrent.clone())),
                    )
                )
            self._layers.append(directions)
        self._hidden = recurrent.size(1)
        self._tables: list[Tensor] | None = None
        lowest = self._layers[0]
        if vocabulary_size * 4 * self._hidden * len(lowest) * enter.element_size() <= _TABLE_BYTES:
            tokens = torch.arange(vocabulary_size, device=enter.device).view(1, -1, 1)
            embedded = encoder.embeddings(tokens)[0]
            self._tables = [multiply(embedded) for multiply, _ in lowest]

    def __call__(self, src: Tensor, lengths: Tensor) -> tuple[Any, Tensor, Tensor]:
        """Encode a batch, as `FastRNNEncoder.forward`."""
        steps, index = self._encoder._packing(src, lengths)
        tokens = src.flatten(0, 1)[index]
        states, lasts = tokens, []
        for number, layer in enumerate(self._layers):
            if number == 0 and self._tables is not None:
                entering = [table.index_select(0, tokens[:, 0]) for table in self._tables]
            else:
                if number == 0:
                    states = self._encoder.embeddings(tokens.unsqueeze(0))[0]
                entering = [enter(states) for enter, _ in layer]
            outputs = entering[0].new_empty(steps.total, len(layer) * self._hidden)
            last = outputs.new_zeros(2, len(layer), steps.batch, self._hidden)
            for at, (_, multiply) in enumerate(layer):
                part = outputs[:, at * self._hidden : (at + 1) * self._hidden]
                order, ends = in_order(steps, bool(at)), (last[0, at], last[1, at])
                cells = make_cells(steps, order, multiply, entering[at], part, ends)
                for step in range(len(order)):
                    cells.forward(step)
            lasts.append(last)
            states = outputs
        return *self._encoder._results(steps, index, states, lasts), lengths
