"""OpenNMT-py's LSTM encoder for whole batches; `definition.encode` says what it computes.

Its layers run over packed steps on a CPU and over fixed steps on a GPU, unless `fixed_shapes` says
otherwise. `steps.py` explains packed and fixed steps, docs/recurrence.md has pictures of them, and
`encoder_layers.py` runs a layer over either.
"""

from __future__ import annotations

import torch
from torch import Tensor

from onmt_entmax.recurrence.bridge import BridgedRNNEncoder
from onmt_entmax.recurrence.dropout import dropout_factors
from onmt_entmax.recurrence.embedding import Embedded, embed_distinct
from onmt_entmax.recurrence.encoder_layers import (
    DirectionWeights,
    EncoderLayers,
    States,
    layers_for,
)
from onmt_entmax.recurrence.options import RecurrenceOptions
from onmt_entmax.recurrence.steps import Steps


class FastRNNEncoder(RecurrenceOptions, BridgedRNNEncoder):
    """OpenNMT-py's `RNNEncoder`, with steps for whole batches.

    Constructor and weights are the same. So are the results, except with a bridge of several
    layers, see `BridgedRNNEncoder`. It is for LSTMs without position embeddings; `build_model`
    takes `BridgedRNNEncoder` for all others.
    """

    def forward(self, src: Tensor, lengths: Tensor | None = None) -> tuple[States, Tensor, Tensor]:
        """Encode a batch, as OpenNMT-py's `RNNEncoder.forward`.

        Args:
            src: ids ``(src_len, batch, nfeats)``.
            lengths: lengths of the sources, ``(batch,)``, longest first if steps are packed. They
                must be given, unlike in OpenNMT-py.

        Returns:
            The last hidden and cell states, ``(layers * directions, batch, hidden / directions)``
            each; the memory bank ``(src_len, batch, hidden)``; and the lengths.

        Raises:
            ValueError: if steps are packed, and the lengths are not sorted or one is 0.
        """
        self._check_args(src, lengths)
        assert lengths is not None, "the models of this package give them"
        length, batch, _ = src.shape
        fixed = self.has_fixed_steps(src.device)
        lengths_on_device = lengths.to(src.device)
        if not fixed:
            _refuse_wrong_order(lengths_on_device)
        steps = Steps.of(lengths_on_device, length, fixed)
        tokens = src.flatten(0, 1)  # (src_len * batch, nfeats)
        packed_tokens = tokens if fixed else tokens[steps.positions]
        embedded = embed_distinct(self.embeddings, packed_tokens, fixed=fixed)
        # `matmul_dtype` sets the precision, not autocast: states stay exact.
        with torch.autocast("cuda" if src.is_cuda else "cpu", enabled=False):
            layers = layers_for(steps, batch, self.rnn.hidden_size, self.matmul_dtype)
            states, last = self._run_layers(layers, embedded)
            bank = _memory_bank(steps, states, length, batch)
        if self.use_bridge:
            last = self._bridge(last)
        return last, bank, lengths

    def _run_layers(self, layers: EncoderLayers, embedded: Embedded) -> tuple[Tensor, States]:
        """Run all layers.

        Args:
            layers: how they run over the batch.
            embedded: the tokens of the batch.

        Returns:
            Packed states ``(total, directions * hidden)`` of the highest layer, and the last states
            of all layers ``(layers * directions, batch, hidden)``.
        """
        x, token_rows = embedded
        directions = 2 if self.rnn.bidirectional else 1
        last_states = []
        for layer in range(self.rnn.num_layers):
            if layer > 0:
                factors = dropout_factors(tuple(x.shape), self.rnn, x)
                x = x if factors is None else x * factors
                token_rows = None  # packed states have a row for each token
            all_directions = self.rnn.all_weights[layer * directions : (layer + 1) * directions]
            weights = [DirectionWeights(*tensors) for tensors in all_directions]
            x, last = layers.run(x, token_rows, weights)
            last_states.append(last)
        hidden, cell = (torch.cat(states) for states in zip(*last_states, strict=True))
        return x, (hidden, cell)


def _refuse_wrong_order(lengths: Tensor) -> None:
    """Refuse lengths ``(batch,)`` for which there are no packed steps.

    Raises:
        ValueError: if they are not sorted, longest first, or one is 0.
    """
    is_sorted = bool((lengths.diff() <= 0).all())
    if not (is_sorted and int(lengths[-1]) > 0):
        raise ValueError("sort a batch by source length, longest first, without empty sources")


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
    states = steps.with_zeros_at_padding(states)
    bank = states.new_zeros(batch * length, states.size(1)).index_copy(0, by_sentence, states)
    return bank.view(batch, length, -1).transpose(0, 1)
