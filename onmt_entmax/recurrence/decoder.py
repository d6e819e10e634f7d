"""OpenNMT-py's input-feeding LSTM decoder, by teacher forcing over packed or fixed steps."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from onmt_entmax.nn.products import linear
from onmt_entmax.opennmt import InputFeedRNNDecoder
from onmt_entmax.recurrence.attention import attention_steps
from onmt_entmax.recurrence.deferred import anchor
from onmt_entmax.recurrence.dropout import _split_mask
from onmt_entmax.recurrence.embedding import _embed, _pick
from onmt_entmax.recurrence.layer import _Layer, _Step
from onmt_entmax.recurrence.steps import Steps


class InputFeedDecoder(InputFeedRNNDecoder):
    """OpenNMT-py's `InputFeedRNNDecoder`, which a deeper encoder may precede."""

    def init_state(self, src: Tensor, memory_bank: Tensor, encoder_final: Any) -> None:
        """Start from the encoder's last states; of a deeper encoder, from its lowest layers'.

        OpenNMT-py takes the lowest layers too.
        """
        super().init_state(src, memory_bank, encoder_final)
        layers = self.rnn.num_layers
        self.state["hidden"] = tuple(state[:layers] for state in self.state["hidden"])


class FastInputFeedRNNDecoder(InputFeedDecoder):
    """OpenNMT-py's `InputFeedRNNDecoder`, with the recurrence of this module by teacher forcing.

    Constructor, weights and results are the same. It is for LSTMs with `EntmaxGlobalAttention` and
    without a context gate; `build_model` takes OpenNMT-py's loop for all others. `forward` is that
    loop. For the steps of a search see `DecoderStep`.

    Attributes:
        matmul_dtype: see `FastRNNEncoder`.
        fixed_shapes: likewise.
    """

    matmul_dtype: torch.dtype | None = None
    fixed_shapes: bool | None = None

    def teacher_forced(
        self,
        tgt: Tensor,
        target_lengths: Tensor | None,
        memory_bank: Tensor,
        memory_lengths: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Return the outputs at the real positions of padded targets.

        Starts from the state of `init_state`, and leaves it unchanged, since sentences end at
        different steps.

        Args:
            tgt: decoder input ids ``(tgt_len, batch, nfeats)``.
            target_lengths: decoder steps of each sentence, ``(batch,)``, at most tgt_len; on a
                GPU, reading them synchronises. None: all have tgt_len.
            memory_bank: source vectors ``(src_len, batch, hidden)``.
            memory_lengths: real source vectors of each sentence, ``(batch,)``.

        Returns:
            Outputs ``(total, hidden)``, where total is the sum of the target lengths, and their
            positions ``(total,)`` in the flattened ``(tgt_len * batch)``.

        Raises:
            ValueError: if a target length exceeds tgt_len.
        """
        (count, batch, _), device = tgt.shape, tgt.device
        fixed = device.type != "cpu" if self.fixed_shapes is None else self.fixed_shapes
        if target_lengths is None:
            lengths = torch.full((batch,), count, device=device)
        elif len(target_lengths) and int(target_lengths.max()) > count:
            raise ValueError(
                f"a target length is {int(target_lengths.max())}, but the decoder's input has "
                f"{count} only; count decoder steps, without the end symbol's"
            )
        else:
            lengths = target_lengths.to(device)
        order = torch.arange(batch, device=device)
        if not fixed:
            order = lengths.argsort(descending=True, stable=True)
        steps = Steps.of(lengths[order], count, fixed)
        index = steps.places // batch * batch + order[steps.places % batch]
        sources = memory_bank.transpose(0, 1).index_select(0, order)
        real = memory_lengths.to(order)[order]
        outputs = self._recur(steps, tgt.flatten(0, 1)[index], sources, real, order)
        if steps.live is not None and target_lengths is not None:
            index = steps.live.flatten().nonzero().squeeze(1)
            outputs = outputs[index]
        return outputs, index

    def _recur(
        self, steps: Steps, tokens: Tensor, bank: Tensor, lengths: Tensor, order: Tensor
    ) -> Tensor:
        """Return packed outputs.

        Args:
            steps: rows of each step.
            tokens: packed ids ``(total, features)``.
            bank: source vectors ``(batch, source, hidden)``, in the order of the rows.
            lengths: of the sources, likewise.
            order: sentence of each row.
        """
        if bank.device.type == "cpu" and not ((lengths > 0) & (lengths <= bank.size(1))).all():
            raise ValueError("attention needs source lengths from 1 to that of the memory bank")
        width, total, dtype = self.hidden_size, len(tokens), self.matmul_dtype
        embedded, distinct = _embed(self.embeddings, tokens, steps.live is not None)
        hidden, cell = ([*state.index_select(1, order)] for state in self.state["hidden"])
        fed, outputs = self.state["input_feed"][0, order], []
        with torch.autocast("cuda" if bank.is_cuda else "cpu", enabled=False):
            layers, anchors, masks = [], [], []
            for number, layer in enumerate(self.rnn.layers):
                below, bias = layer.weight_ih, layer.bias_ih + layer.bias_hh
                summand = bias.expand(total, -1)
                if number == 0:
                    enter, below = below.split([embedded.size(1), width], 1)
                    summand = _pick(linear(embedded, enter, bias, dtype), distinct)
                matrix = torch.cat([below, layer.weight_hh], 1)
                layers.append(_Layer(matrix, summand, steps.sizes, dtype))
                anchors.append(anchor(layers[-1], matrix, summand))
                between = self.rnn.dropout if number + 1 < self.rnn.num_layers else None
                masks.append(_split_mask((total, width), between, bank, steps.sizes))
            above = _split_mask((total, width), self.dropout, bank, steps.sizes)
            attend = attention_steps(self.attn, bank, lengths, steps.sizes, steps.places, dtype)
            for number in range(len(steps.sizes)):
                x = fed
                for at, (layer, held, mask) in enumerate(zip(layers, anchors, masks, strict=True)):
                    x, hidden[at], cell[at] = _Step.apply(
                        layer, held, number, mask[number], x, hidden[at], cell[at]
                    )
                fed = attend(number, x, above[number])
                outputs.append(fed)
        return torch.cat(outputs) if outputs else fed[:0]
