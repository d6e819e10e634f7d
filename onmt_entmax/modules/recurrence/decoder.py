"""OpenNMT-py's input-feeding decoder, trained by the fast recurrence."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from onmt_entmax.modules.attention import EntmaxGlobalAttention
from onmt_entmax.modules.recurrence.cell import dropout_mask
from onmt_entmax.modules.recurrence.decoding import DecoderStep
from onmt_entmax.modules.recurrence.inputfeed import InputFeedRecurrence, Plan
from onmt_entmax.modules.recurrence.steps import Steps, on_device
from onmt_entmax.modules.recurrence.tokens import Repeats, embed
from onmt_entmax.opennmt import GlobalAttention, InputFeedRNNDecoder, StackedLSTM


class FastInputFeedRNNDecoder(InputFeedRNNDecoder):
    """OpenNMT-py's `InputFeedRNNDecoder`, trained as one autograd function.

    Same constructor, weights and results. Whatever the fast recurrence does not cover (GRU, no
    attention, coverage, copy attention, context gate, other attention classes) and single steps
    run through OpenNMT-py's own loop; for those of a search see `prepared_step`.

    Attributes:
        matmul_dtype: type in which products with weights are computed, `torch.bfloat16` or None
            for the weights' own. States, sums over steps and attention keep the weights' type.
    """

    matmul_dtype: torch.dtype | None = None

    def init_state(self, src: Tensor, memory_bank: Tensor, encoder_final: Any) -> None:
        """Begin where the encoder ended; of an encoder with more layers, its lowest are taken, as
        OpenNMT-py takes them."""
        super().init_state(src, memory_bank, encoder_final)
        layers = self.rnn.num_layers
        self.state["hidden"] = tuple(state[:layers] for state in self.state["hidden"])

    def packed_forward(
        self,
        tgt: Tensor,
        target_lengths: Tensor,
        memory_bank: Tensor,
        memory_lengths: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Outputs at the real positions of padded targets, from the state of `init_state`.

        `self.state` stays as it is: there is no common last step to continue from.

        Args:
            tgt: decoder input ids ``(tgt_len, batch, nfeats)``.
            target_lengths: decoder steps of each sentence, ``(batch,)``, at most tgt_len; quick
                on the CPU, from where the sizes of the steps are known without waiting.
            memory_bank: source vectors ``(src_len, batch, hidden)``.
            memory_lengths: real source vectors of each sentence, ``(batch,)``; None: all.

        Returns:
            Outputs ``(total, hidden)``, total being the sum of the target lengths, and the
            positions ``(total,)`` in the flattened ``(tgt_len * batch)`` that they belong to.
        """
        order = target_lengths.argsort(descending=True, stable=True)
        lengths: list[int] = target_lengths[order].tolist()
        if lengths and lengths[0] > tgt.size(0):
            raise ValueError(
                f"a target length is {lengths[0]}, but there are only {tgt.size(0)} decoder "
                "inputs; count decoder steps, without the end symbol's"
            )
        steps = Steps.of(lengths)
        order = on_device(order, tgt.device)
        index = steps.index(order)
        if memory_lengths is not None:
            memory_lengths = on_device(memory_lengths, tgt.device)
        if not self._is_covered():
            outputs, _ = super().forward(tgt, memory_bank, memory_lengths=memory_lengths)
            return outputs.flatten(0, 1)[index], index
        if memory_lengths is not None:
            memory_lengths = memory_lengths[order]
        embedded = embed(self.embeddings, tgt.flatten(0, 1)[index])
        hidden, cell = (state.index_select(1, order) for state in self.state["hidden"])
        feed = self.state["input_feed"][0, order]
        bank = memory_bank.transpose(0, 1).index_select(0, order)
        outputs, *_ = self._recur(steps, embedded, bank, memory_lengths, (hidden, cell, feed))
        return outputs, index

    def prepared_step(self, vocabulary_size: int) -> DecoderStep | None:
        """Single steps with the weights as they are now, or None where they are not covered."""
        if (
            not self._is_covered()
            or self.attn.attn_type not in ("dot", "general")
            or self.embeddings.position_encoding
        ):
            return None
        return DecoderStep(self, vocabulary_size, self._alpha())

    def _run_forward_pass(
        self, tgt: Tensor, memory_bank: Tensor, memory_lengths: Tensor | None = None
    ) -> tuple[tuple[Tensor, ...], Any, dict[str, Any]]:
        if tgt.size(0) == 1 or not self._is_covered():
            return super()._run_forward_pass(tgt, memory_bank, memory_lengths=memory_lengths)
        length, batch, _ = tgt.size()
        hidden, cell = self.state["hidden"]
        outputs, attended, hidden, cell = self._recur(
            Steps.of([length] * batch),
            (self.embeddings(tgt).flatten(0, 1), Repeats(length * batch)),
            memory_bank.transpose(0, 1),
            memory_lengths,
            (hidden, cell, self.state["input_feed"].squeeze(0)),
        )
        return (hidden, cell), outputs.view(length, batch, -1), {"std": attended}

    def _is_covered(self) -> bool:
        return (
            isinstance(self.rnn, StackedLSTM)
            and type(self.attn) in (GlobalAttention, EntmaxGlobalAttention)
            and not (self._coverage or self._reuse_copy_attn)
            and self.copy_attn is None
            and self.context_gate is None
        )

    def _alpha(self) -> float:
        if isinstance(self.attn, EntmaxGlobalAttention):
            return self.attn.alpha
        return 1.0 if self.attn.attn_func == "softmax" else 2.0

    def _recur(
        self,
        steps: Steps,
        entering: tuple[Tensor, Repeats],
        bank: Tensor,
        memory_lengths: Tensor | None,
        state: tuple[Tensor, Tensor, Tensor],
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Run the recurrence over rows sorted by their number of steps; see the function.

        `bank` is ``(batch, src_len, hidden)``.
        """
        embedded, repeats = entering
        layers, hidden = self.rnn.num_layers, self.hidden_size
        padding = between = above = None
        if memory_lengths is not None:
            # OpenNMT-py's `sequence_mask` would wait for a GPU.
            real = torch.arange(bank.size(1), device=bank.device) < memory_lengths.unsqueeze(1)
            padding = torch.zeros_like(real, dtype=embedded.dtype).masked_fill_(~real, -torch.inf)
        if self.rnn.dropout.training and layers > 1:
            shape = (layers - 1, steps.total, hidden)
            between = dropout_mask(shape, self.rnn.dropout.p, embedded)
        if self.dropout.training:
            above = dropout_mask((steps.total, hidden), self.dropout.p, embedded)
        names, attention = zip(*self.attn.named_parameters(), strict=True)
        plan = Plan(
            steps, repeats, self._alpha(), padding, between, above, names, self.matmul_dtype
        )
        cells = [
            weight
            for layer in self.rnn.layers
            for weight in (layer.weight_ih, layer.weight_hh, layer.bias_ih, layer.bias_hh)
        ]
        inputs = (part.to(embedded.dtype) for part in (bank.contiguous(), *state))
        # States are exact: `matmul_dtype` says where less will do, not autocast.
        with torch.autocast(embedded.device.type, enabled=False):
            return InputFeedRecurrence.apply(plan, embedded, *inputs, *cells, *attention)
