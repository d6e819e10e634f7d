"""OpenNMT-py's input-feeding LSTM decoder; `definition.decode` says what it computes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from onmt_entmax.nn.parts import DecoderPart
from onmt_entmax.nn.products import linear
from onmt_entmax.opennmt import InputFeedRNNDecoder
from onmt_entmax.recurrence.attention import attention_steps
from onmt_entmax.recurrence.decoder_step import DecoderStep
from onmt_entmax.recurrence.deferred import after_all_steps
from onmt_entmax.recurrence.dropout import dropout_of_steps
from onmt_entmax.recurrence.embedding import Embedded, embed_distinct, expand
from onmt_entmax.recurrence.layer import LayerStep, LayerWeight
from onmt_entmax.recurrence.options import RecurrenceOptions
from onmt_entmax.recurrence.steps import Steps


class InputFeedDecoder(DecoderPart, InputFeedRNNDecoder):
    """OpenNMT-py's `InputFeedRNNDecoder`, which may follow an encoder with more layers."""

    def init_state(self, src: Tensor, memory_bank: Tensor, encoder_final: Any) -> None:
        """Start from the last states of the encoder's lowest layers, as many as the decoder has.

        OpenNMT-py keeps the states of all layers, but its loop reads only these.
        """
        super().init_state(src, memory_bank, encoder_final)
        layers = self.rnn.num_layers
        self.state["hidden"] = tuple(state[:layers] for state in self.state["hidden"])


class _PreparedLayer(NamedTuple):
    """What a layer needs in all steps.

    Attributes:
        weight: its weight and the parts of its summand.
        dependency: the scalar of `after_all_steps`.
        dropout: for each step, the dropout factors of its output ``(rows, hidden)``, or None.
    """

    weight: LayerWeight
    dependency: Tensor
    dropout: Sequence[Tensor | None]


class FastInputFeedRNNDecoder(RecurrenceOptions, InputFeedDecoder):
    """OpenNMT-py's `InputFeedRNNDecoder`, with steps for whole batches by teacher forcing.

    Constructor, weights and results are the same. It is for LSTMs with `EntmaxGlobalAttention` and
    without a context gate; `build_model` takes OpenNMT-py's own decoder for all others. `forward`
    is OpenNMT-py's loop over steps. In training, `teacher_forced` replaces it; in a search,
    `DecoderStep` does.
    """

    def search_step(self, vocabulary_size: int, dtype: torch.dtype | None) -> DecoderStep | None:
        """Return the prepared decoder if its attention can project; see `DecoderPart`."""
        return DecoderStep(self, vocabulary_size, dtype) if self.attn.can_project else None

    def teacher_forced(
        self,
        tgt: Tensor,
        target_lengths: Tensor | None,
        memory_bank: Tensor,
        memory_lengths: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Return the outputs at the real positions of padded targets.

        The decoder starts from the state of `init_state`, and leaves it unchanged, since sentences
        end at different steps.

        Args:
            tgt: decoder input ids ``(tgt_len, batch, nfeats)``.
            target_lengths: number of decoder steps of each sentence, ``(batch,)``, at most tgt_len.
                None: all sentences have tgt_len steps, and nothing has to wait for a GPU.
            memory_bank: source vectors ``(src_len, batch, hidden)``.
            memory_lengths: real source vectors of each sentence, ``(batch,)``.

        Returns:
            Outputs ``(total, hidden)``, where total is the sum of the target lengths, and their
            positions ``(total,)`` in the flattened ``(tgt_len * batch)``.

        Raises:
            ValueError: if a target length exceeds tgt_len, or on a CPU a source length is not from
                1 to src_len.
        """
        count, batch, _ = tgt.shape
        device = tgt.device
        fixed = self.has_fixed_steps(device)
        lengths = _target_lengths(target_lengths, count, batch, device)
        order = torch.arange(batch, device=device)  # the sentence of each row
        if not fixed:
            order = lengths.argsort(descending=True, stable=True)
        steps = Steps.of(lengths[order], count, fixed)
        # `steps.positions` counts sentences in the order of their lengths. These are the positions
        # of the same rows in the batch's own order.
        positions = steps.positions // batch * batch + order[steps.positions % batch]
        sources = memory_bank.transpose(0, 1).index_select(0, order)
        source_lengths = memory_lengths.to(order)[order]
        outputs = self._run(steps, tgt.flatten(0, 1)[positions], sources, source_lengths, order)
        if steps.real is not None and target_lengths is not None:
            # Fixed steps compute padding, too, which is left out here. Their rows are in the
            # batch's own order.
            positions = steps.real.flatten().nonzero().squeeze(1)
            outputs = outputs[positions]
        return outputs, positions

    def _run(
        self, steps: Steps, tokens: Tensor, bank: Tensor, lengths: Tensor, order: Tensor
    ) -> Tensor:
        """Return the outputs of all steps, one step after the other, ``(total, hidden)``.

        Args:
            steps: the rows of each step.
            tokens: ids ``(total, features)``, one step after the other.
            bank: source vectors ``(batch, source, hidden)``, in the order of the rows.
            lengths: lengths of the sources ``(batch,)``, in the order of the rows.
            order: the sentence of each row, ``(batch,)``.

        Raises:
            ValueError: on a CPU, if a source length is not from 1 to the length of the memory bank.
        """
        if bank.device.type == "cpu" and not ((lengths > 0) & (lengths <= bank.size(1))).all():
            raise ValueError("attention needs source lengths from 1 to that of the memory bank")
        first_hidden, first_cell = self.state["hidden"]  # (layers, batch, hidden)
        # The states of each layer, and the input feed: all (batch, hidden), in the order of rows.
        hidden = [*first_hidden.index_select(1, order)]
        cell = [*first_cell.index_select(1, order)]
        fed = self.state["input_feed"][0, order]
        outputs = []
        embedded = embed_distinct(self.embeddings, tokens, fixed=steps.are_fixed)
        # `matmul_dtype` sets the precision, not autocast: states stay exact.
        with torch.autocast("cuda" if bank.is_cuda else "cpu", enabled=False):
            layers = self._prepared_layers(steps, embedded, bank)
            output_dropout = dropout_of_steps(steps.sizes, self.hidden_size, self.dropout, bank)
            attend = attention_steps(self.attn, bank, lengths, steps, self.matmul_dtype)
            for step in range(len(steps.sizes)):
                x = fed  # the lowest layer's product with the token is in its summand
                for number, layer in enumerate(layers):
                    x, hidden[number], cell[number] = LayerStep.apply(
                        layer.weight,
                        layer.dependency,
                        step,
                        layer.dropout[step],
                        x,
                        hidden[number],
                        cell[number],
                    )
                fed = attend(step, x, output_dropout[step])
                outputs.append(fed)
        return torch.cat(outputs) if outputs else fed[:0]

    def _prepared_layers(
        self, steps: Steps, embedded: Embedded, bank: Tensor
    ) -> list[_PreparedLayer]:
        """Return what each layer needs in all steps.

        Args:
            steps: the rows of each step.
            embedded: the tokens of all steps.
            bank: source vectors; the dropout factors have their type and device.
        """
        layers = []
        total = len(steps.positions)
        for number, layer in enumerate(self.rnn.layers):
            matrix, summand = self._layer_weights(number, layer, embedded, total)
            weight = LayerWeight(matrix, summand, steps.sizes, self.matmul_dtype)
            dependency = after_all_steps(weight, matrix, summand)
            between = self.rnn.dropout if number + 1 < self.rnn.num_layers else None
            dropout = dropout_of_steps(steps.sizes, self.hidden_size, between, bank)
            layers.append(_PreparedLayer(weight, dependency, dropout))
        return layers

    def _layer_weights(
        self, number: int, layer: torch.nn.LSTMCell, embedded: Embedded, total: int
    ) -> tuple[Tensor, Tensor]:
        """Return what a layer multiplies in each step, and what it adds.

        The lowest layer's product with the embeddings needs no state, so it is computed before the
        steps.

        Args:
            number: the number of the layer; the lowest is 0.
            layer: the layer's weights.
            embedded: the tokens of all steps.
            total: number of rows of all steps together.

        Returns:
            The matrix that multiplies the input feed (or the lower layer's output) and the hidden
            state, ``(4 * hidden, 2 * hidden)``; and the summand ``(total, 4 * hidden)``.
        """
        below = layer.weight_ih
        bias = layer.bias_ih + layer.bias_hh
        if number == 0:  # its input is the token's embedding, then the input feed
            sizes = [embedded.vectors.size(1), self.hidden_size]
            token_weight, below = below.split(sizes, 1)
            products = linear(embedded.vectors, token_weight, bias, self.matmul_dtype)
            summand = expand(products, embedded.rows)
        else:
            summand = bias.expand(total, -1)
        return torch.cat([below, layer.weight_hh], 1), summand


def _target_lengths(lengths: Tensor | None, count: int, batch: int, device: torch.device) -> Tensor:
    """Return the number of decoder steps of each sentence, ``(batch,)``, on a device.

    Args:
        lengths: the numbers, ``(batch,)``; None: all sentences have `count` steps.
        count: number of steps of the padded batch.
        batch: number of sentences.
        device: the device of the result.

    Raises:
        ValueError: if a length exceeds `count`.
    """
    if lengths is None:
        return torch.full((batch,), count, device=device)
    if len(lengths) and int(lengths.max()) > count:
        raise ValueError(
            f"a target length is {int(lengths.max())}, but the decoder's input has {count} only; "
            "count decoder steps, without the end symbol's"
        )
    return lengths.to(device)
