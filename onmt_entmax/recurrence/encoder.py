"""OpenNMT-py's LSTM encoder for whole batches; `definition.encode` says what it computes.

On a CPU, a layer runs over packed steps, one direction after the other. On a GPU it runs over fixed
steps, both directions in one product a step; the second one has the steps in reverse, padding
first. `Steps` says what these are, and docs/architecture.md has pictures of both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from onmt_entmax.nn.products import linear
from onmt_entmax.recurrence.bridge import BridgedRNNEncoder
from onmt_entmax.recurrence.deferred import after_all_steps
from onmt_entmax.recurrence.dropout import dropout_factors
from onmt_entmax.recurrence.embedding import embed_distinct, expand
from onmt_entmax.recurrence.layer import LayerStep, LayerWeight
from onmt_entmax.recurrence.options import RecurrenceOptions
from onmt_entmax.recurrence.steps import Steps

States = tuple[Tensor, Tensor]
"""Hidden and cell states."""

# What is added to a closed and to an open gate: its sigmoid is exactly 0 and 1, in float64 too.
_CLOSED, _OPEN = -1e4, 1e4


class FastRNNEncoder(RecurrenceOptions, BridgedRNNEncoder):
    """OpenNMT-py's `RNNEncoder`, with steps for whole batches.

    Constructor and weights are the same, and so are results but for the bridge of several layers.
    It is for LSTMs without positions; `build_model` takes `BridgedRNNEncoder` for all others.
    """

    def forward(self, src: Tensor, lengths: Tensor | None = None) -> tuple[Any, Tensor, Any]:
        """Encode a batch, as OpenNMT-py's `RNNEncoder.forward`.

        Args:
            src: ids ``(src_len, batch, nfeats)``.
            lengths: ``(batch,)``; on a CPU longest first. None, which OpenNMT-py allows, is not
                for this encoder.

        Returns:
            Last states, memory bank ``(src_len, batch, hidden)``, and the lengths.

        Raises:
            ValueError: on a CPU, if the lengths are not sorted, or one is 0.
        """
        self._check_args(src, lengths)
        assert lengths is not None
        length, batch, _ = src.shape
        fixed = self.has_fixed_steps(src.device)
        here = lengths.to(src.device)
        if not fixed and not (bool((here.diff() <= 0).all()) and int(here[-1]) > 0):
            raise ValueError("sort a batch by source length, longest first, without empty sources")
        steps = Steps.of(here, length, fixed)
        tokens = src.flatten(0, 1)  # (src_len * batch, nfeats)
        packed_tokens = tokens if fixed else tokens[steps.positions]
        embedded, token_rows = embed_distinct(self.embeddings, packed_tokens, fixed)
        # `matmul_dtype` sets the precision, not autocast: states stay exact.
        with torch.autocast("cuda" if src.is_cuda else "cpu", enabled=False):
            states, last = self._run_layers(steps, embedded, token_rows, batch)
            bank = _memory_bank(steps, states, length, batch)
        if self.use_bridge:
            last = self._bridge(last)
        return last, bank, lengths

    def _run_layers(
        self, steps: Steps, embedded: Tensor, token_rows: Tensor | None, batch: int
    ) -> tuple[Tensor, States]:
        """Run all layers.

        Args:
            steps: the rows of each step.
            embedded: the first result of `embed_distinct`.
            token_rows: its second result.
            batch: number of sentences.

        Returns:
            Packed states ``(total, hidden)`` of the highest layer, and the last states of all
            layers ``(layers * directions, batch, hidden / directions)``.
        """
        x = embedded
        directions = 2 if self.rnn.bidirectional else 1
        last_states = []
        for layer in range(self.rnn.num_layers):
            if layer > 0:
                factors = dropout_factors(tuple(x.shape), self.rnn, x)
                x = x if factors is None else x * factors
                token_rows = None  # packed states have a row for each token
            weights = self.rnn.all_weights[layer * directions : (layer + 1) * directions]
            if steps.real is None:
                x, last = self._run_packed(steps, x, token_rows, weights, batch)
            else:
                x, last = self._run_fixed(steps, steps.real, x, weights, batch)
            last_states.append(last)
        hidden, cell = (torch.cat(states) for states in zip(*last_states, strict=True))
        return x, (hidden, cell)

    def _run_packed(
        self,
        steps: Steps,
        x: Tensor,
        token_rows: Tensor | None,
        weights: Sequence[Sequence[Tensor]],
        batch: int,
    ) -> tuple[Tensor, States]:
        """Run one layer over packed steps, one direction after the other.

        Args:
            steps: the rows of each step.
            x: inputs ``(distinct, in)``.
            token_rows: of `expand`.
            weights: of each direction: input weight, hidden weight, and two biases.
            batch: number of sentences.

        Returns:
            Packed states ``(total, directions * hidden)``, and the last hidden and cell states
            ``(directions, batch, hidden)``.
        """
        summands = [expand(self._entering(x, direction), token_rows) for direction in weights]
        first = x.new_zeros(batch, self.rnn.hidden_size)
        outputs, hiddens, cells = [], [], []
        for backwards, direction, summand in zip((False, True), weights, summands, strict=False):
            _, hidden_weight, *_ = direction
            states, hidden, cell = self._run_steps(
                steps, hidden_weight, summand, first, backwards=backwards
            )
            outputs.append(states)
            hiddens.append(hidden)
            cells.append(cell)
        return torch.cat(outputs, 1), (torch.stack(hiddens), torch.stack(cells))

    def _run_fixed(
        self,
        steps: Steps,
        real: Tensor,
        x: Tensor,
        weights: Sequence[Sequence[Tensor]],
        batch: int,
    ) -> tuple[Tensor, States]:
        """Run one layer over fixed steps, all directions in one product a step.

        The second direction has its steps in reverse, so that padding comes first.

        Args:
            steps: the rows of each step.
            real: which rows are no padding, ``(total, 1)``.
            x: inputs ``(total, in)``.
            weights: of each direction: input weight, hidden weight, and two biases.
            batch: number of sentences.

        Returns:
            States ``(total, directions * hidden)``, which mean nothing at padding, and the last
            hidden and cell states ``(directions, batch, hidden)``.
        """
        at_padding = self._gates_at_padding(x)
        summands = [
            torch.where(real, self._entering(x, direction), at_padding) for direction in weights
        ]
        summands[1:] = map(steps.reversed, summands[1:])
        hidden_weights = torch.stack([hidden_weight for _, hidden_weight, *_ in weights])
        first = x.new_zeros(len(weights), batch, self.rnn.hidden_size)
        states, hidden, cell = self._run_steps(
            steps, hidden_weights, torch.stack(summands), first, backwards=False
        )
        outputs, hiddens = [*states], [*hidden]
        # Padding keeps cell states, but not hidden ones. The first direction ends with padding, and
        # its last hidden states are those of the sentences' last steps; the second one does not.
        assert steps.last is not None
        hiddens[0] = outputs[0].index_select(0, steps.last)
        outputs[1:] = map(steps.reversed, outputs[1:])
        return torch.cat(outputs, 1), (torch.stack(hiddens), cell)

    def _gates_at_padding(self, x: Tensor) -> Tensor:
        """Return summands ``(4 * hidden,)`` under which a step keeps the cell state.

        The input gate is closed and the forget gate open, so a cell state that is 0 stays 0, too.

        Args:
            x: gives type and device. Graphs record no copies from a CPU, so gates are filled there.
        """
        gates = x.new_zeros(4, self.rnn.hidden_size)  # input, forget, candidate, output
        gates[0] = _CLOSED
        gates[1] = _OPEN
        return gates.flatten()

    def _entering(self, x: Tensor, weights: Sequence[Tensor]) -> Tensor:
        """Return the part of the gates that inputs ``(rows, in)`` have, ``(rows, 4 * hidden)``."""
        input_weight, _, input_bias, hidden_bias = weights
        return linear(x, input_weight, input_bias + hidden_bias, self.matmul_dtype)

    def _run_steps(
        self,
        steps: Steps,
        hidden_weight: Tensor,
        summand: Tensor,
        first: Tensor,
        *,
        backwards: bool,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Run the steps of one direction, or of all at once.

        Args:
            steps: the rows of each step.
            hidden_weight: ``(..., 4 * hidden, hidden)``.
            summand: the gates' part of the inputs, ``(..., total, 4 * hidden)``.
            first: hidden and cell states before the first step, ``(..., batch, hidden)``.
            backwards: whether the last step comes first.

        Returns:
            Hidden states of all steps ``(..., total, hidden)``, and the last hidden and cell
            states ``(..., batch, hidden)``.
        """
        layer = LayerWeight(hidden_weight, summand, steps.sizes, self.matmul_dtype)
        dependency = after_all_steps(layer, hidden_weight, summand)
        hidden = cell = first
        order = range(len(steps.sizes))
        outputs = []
        for step in reversed(order) if backwards else order:
            output, hidden, cell = LayerStep.apply(
                layer, dependency, step, None, None, hidden, cell
            )
            outputs.append(output)
        if backwards:
            outputs.reverse()
        return torch.cat(outputs, -2), hidden, cell


def _memory_bank(steps: Steps, states: Tensor, length: int, batch: int) -> Tensor:
    """Return the memory bank ``(length, batch, hidden)`` of packed states, zeros at padding.

    Each sentence is contiguous in memory, as attention reads it.

    Args:
        steps: the rows of each step.
        states: ``(total, hidden)``.
        length: number of steps.
        batch: number of sentences.
    """
    # From positions in (length, batch) to those in (batch, length).
    step, sentence = steps.positions // batch, steps.positions % batch
    by_sentence = sentence * length + step
    states = states if steps.real is None else states * steps.real
    bank = states.new_zeros(batch * length, states.size(1)).index_copy(0, by_sentence, states)
    return bank.view(batch, length, -1).transpose(0, 1)
