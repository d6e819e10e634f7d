"""OpenNMT-py's input-feeding decoder, trained with teacher forcing as one autograd node.

OpenNMT-py's loop has autograd record some thirty small operators a step. Here a step computes only
what depends on the step before, and only for active sentences; embeddings enter by one product, and
each weight's gradient is one product over all steps (for LSTMs without attention: Appleyard et al.
2016).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from onmt_entmax.nn.attention import EntmaxGlobalAttention
from onmt_entmax.nn.lstm.attention import Readout, RecurrentAttention
from onmt_entmax.nn.lstm.cells import (
    Above,
    Cells,
    Repeats,
    Steps,
    double_candidate_,
    dropout_mask,
    embed,
    on_device,
)
from onmt_entmax.nn.lstm.native import make_cells, make_readout
from onmt_entmax.nn.lstm.stepping import DecoderStep
from onmt_entmax.nn.products import PreparedWeight, product, weight_gradient
from onmt_entmax.opennmt import GlobalAttention, InputFeedRNNDecoder, StackedLSTM


class FastInputFeedRNNDecoder(InputFeedRNNDecoder):
    """OpenNMT-py's `InputFeedRNNDecoder`, trained as one autograd node.

    Constructor, weights and results are the same. OpenNMT-py's own loop runs single steps, and
    whatever the fast recurrence does not cover: GRU, no attention, coverage, copy attention,
    context gate, other attention classes. For the steps of a search see `prepared_step`.

    Attributes:
        matmul_dtype: of the products with weights, `torch.bfloat16` or None for the weights' own.
            States, sums over steps and attention keep the weights' type.
    """

    matmul_dtype: torch.dtype | None = None

    def init_state(self, src: Tensor, memory_bank: Tensor, encoder_final: Any) -> None:
        """Start from the encoder's last states; of a deeper encoder, from its lowest layers'.

        OpenNMT-py takes the lowest layers too.
        """
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
        """Return the outputs at the real positions of padded targets.

        Starts from the state of `init_state`, and leaves it unchanged, since sentences end at
        different steps.

        Args:
            tgt: decoder input ids ``(tgt_len, batch, nfeats)``.
            target_lengths: decoder steps of each sentence, ``(batch,)``, at most tgt_len; on a
                GPU, reading them synchronises.
            memory_bank: source vectors ``(src_len, batch, hidden)``.
            memory_lengths: real source vectors of each sentence, ``(batch,)``; None: all.

        Returns:
            Outputs ``(total, hidden)``, where total is the sum of the target lengths, and their
            positions ``(total,)`` in the flattened ``(tgt_len * batch)``.

        Raises:
            ValueError: if a target length exceeds tgt_len.
        """
        order = target_lengths.argsort(descending=True, stable=True)
        lengths: list[int] = target_lengths[order].tolist()
        if lengths and lengths[0] > tgt.size(0):
            raise ValueError(
                f"a target length is {lengths[0]}, but the decoder's input has {tgt.size(0)} only; "
                "count decoder steps, without the end symbol's"
            )
        steps = Steps.of(lengths)
        order = on_device(order, tgt.device)
        index = steps.index(order)
        if memory_lengths is not None:
            memory_lengths = on_device(memory_lengths, tgt.device)
        if not self.is_covered():
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
        """Return single steps with the present weights, or None if they are not covered."""
        if (
            not self.is_covered()
            or self.attn.attn_type not in ("dot", "general")
            or self.embeddings.position_encoding
        ):
            return None
        return DecoderStep(self, vocabulary_size, self.attention_alpha())

    def _run_forward_pass(
        self, tgt: Tensor, memory_bank: Tensor, memory_lengths: Tensor | None = None
    ) -> tuple[tuple[Tensor, ...], Any, dict[str, Any]]:
        if tgt.size(0) == 1 or not self.is_covered():
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

    def is_covered(self) -> bool:
        """Return whether the fast recurrence covers this decoder."""
        return (
            isinstance(self.rnn, StackedLSTM)
            and type(self.attn) in (GlobalAttention, EntmaxGlobalAttention)
            and not (self._coverage or self._reuse_copy_attn)
            and self.copy_attn is None
            and self.context_gate is None
        )

    def attention_alpha(self) -> float:
        """Return the attention's alpha, also of OpenNMT-py's own attention."""
        if isinstance(self.attn, EntmaxGlobalAttention):
            return self.attn.alpha
        return 1.0 if self.attn.attn_func == "softmax" else 2.0

    def lstm_weights(self) -> list[Tensor]:
        """Return `weight_ih, weight_hh, bias_ih, bias_hh` of each layer."""
        return [
            weight
            for layer in self.rnn.layers
            for weight in (layer.weight_ih, layer.weight_hh, layer.bias_ih, layer.bias_hh)
        ]

    def _recur(
        self,
        steps: Steps,
        entering: tuple[Tensor, Repeats],
        bank: Tensor,
        memory_lengths: Tensor | None,
        state: tuple[Tensor, Tensor, Tensor],
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Run the recurrence over rows sorted by their number of steps.

        Args:
            steps: active rows.
            entering: embeddings ``(rows, embedding)``, and the row of each packed position.
            bank: ``(batch, src_len, hidden)``.
            memory_lengths: ``(batch,)``; None: all source vectors are real.
            state: first hidden and cell states ``(layers, batch, hidden)``, and the first input
                feed ``(batch, hidden)``.

        Returns:
            As `InputFeedRecurrence`.
        """
        embedded, repeats = entering
        layers, hidden = self.rnn.num_layers, self.hidden_size
        padding = between = above = None
        if memory_lengths is not None:
            # OpenNMT-py's `sequence_mask` would synchronise with a GPU.
            real = torch.arange(bank.size(1), device=bank.device) < memory_lengths.unsqueeze(1)
            padding = torch.zeros_like(real, dtype=embedded.dtype).masked_fill_(~real, -torch.inf)
        if self.rnn.dropout.training and layers > 1:
            shape = (layers - 1, steps.total, hidden)
            between = dropout_mask(shape, self.rnn.dropout.p, embedded)
        if self.dropout.training:
            above = dropout_mask((steps.total, hidden), self.dropout.p, embedded)
        names, attention = zip(*self.attn.named_parameters(), strict=True)
        alpha, dtype = self.attention_alpha(), self.matmul_dtype
        plan = Plan(steps, repeats, alpha, padding, between, above, names, dtype)
        weights = (*self.lstm_weights(), *attention)
        inputs = (part.to(embedded.dtype) for part in (bank.contiguous(), *state))
        # `matmul_dtype` sets the precision, not autocast: states stay exact.
        with torch.autocast(embedded.device.type, enabled=False):
            return InputFeedRecurrence.apply(plan, embedded, *inputs, *weights)


@dataclass(frozen=True)
class Plan:
    """The recurrence's arguments that have no gradients.

    Attributes:
        steps: active rows.
        repeats: the row of the embeddings that each packed position takes.
        alpha: of the attention.
        padding: see `RecurrentAttention`; padded positions come last.
        between: dropout factors between layers, ``(layers - 1, total, hidden)``, or None.
        above: dropout factors of the attentional vectors, ``(total, hidden)``, or None.
        attention_names: names of the attention's parameters, which follow the LSTM's.
        dtype: of the products, see `PreparedWeight`.
    """

    steps: Steps
    repeats: Repeats
    alpha: float
    padding: Tensor | None
    between: Tensor | None
    above: Tensor | None
    attention_names: tuple[str, ...]
    dtype: torch.dtype | None


class _Layers:
    """The stacked LSTM of the recurrence.

    A layer multiplies its input and its previous state side by side, ``[x, h]``, by
    ``[W_ih, W_hh]``. In the lowest layer x is the fed attentional vector; the embeddings' part of
    the gates has been computed already.

    Args:
        plan: see `Plan`.
        embedded: embeddings ``(rows, embedding)``.
        weights: `weight_ih, weight_hh, bias_ih, bias_hh` of each layer.
        last: receive the last hidden and cell states, ``(layers, batch, hidden)`` each.

    Attributes:
        count: number of layers.
        fed: where the attentional vectors are fed, packed ``(rows, hidden)``.
        queries: hidden states of the top layer, ``(total, hidden)``.
        cast_queries: the same in the type of the products.
    """

    def __init__(
        self,
        plan: Plan,
        embedded: Tensor,
        weights: tuple[Tensor, ...],
        last: tuple[Tensor, Tensor],
    ) -> None:
        self._plan, self._embedded = plan, embedded
        self.count, hidden, size = len(weights) // 4, weights[1].size(1), embedded.size(1)
        order = range(len(plan.steps.sizes))
        self._recurrent: list[Tensor] = []
        self._cells: list[Cells] = []
        self.queries = self.cast_queries = embedded.new_empty(plan.steps.total, hidden)
        above: Above | None = None
        dtype = plan.dtype or embedded.dtype
        if dtype != embedded.dtype:
            self.cast_queries = torch.empty_like(self.queries, dtype=dtype)
            above = Above(self.cast_queries, None)
        # From the top down, since each layer writes into the inputs of the layer above.
        for layer in reversed(range(self.count)):
            weight, recurrent, *biases = weights[4 * layer : 4 * layer + 4]
            bias = double_candidate_(biases[0] + biases[1])
            entering: Tensor | None = None
            if layer == 0:
                self._lowest = double_candidate_(weight[:, :size].to(dtype, copy=True))
                gates = product(embedded, self._lowest, bias, plan.dtype)
                entering = plan.repeats.spread(gates)
                weight = weight[:, size:]
            both = weight.new_empty(weight.size(0), 2 * hidden, dtype=dtype)
            for half, part in zip(both.chunk(2, dim=1), (weight, recurrent), strict=True):
                half.copy_(part)
            double_candidate_(both)
            multiply = PreparedWeight(both, bias if layer else None, result=bias.dtype)
            outputs = self.queries if layer == self.count - 1 else torch.empty_like(self.queries)
            ends = last[0][layer], last[1][layer]
            cells = make_cells(plan.steps, order, multiply, entering, outputs, ends, above)
            factors = None if plan.between is None or layer == 0 else plan.between[layer - 1]
            self.fed = cells.inputs[:, :hidden]
            above = Above(self.fed, factors)
            self._cells.insert(0, cells)
            self._recurrent.insert(0, both)

    def begin(self, hidden: Tensor, cell: Tensor, feed: Tensor) -> None:
        """Set the states before the first step.

        Args:
            hidden: states, ``(layers, batch, hidden)``.
            cell: likewise.
            feed: ``(batch, hidden)``.
        """
        for cells, *states in zip(self._cells, hidden, cell, strict=True):
            cells.begin(*states)
        if self._plan.steps.sizes:
            rows = self._plan.steps.rows(0)
            self.fed[rows] = feed[: rows.stop]

    def forward(self, step: int) -> None:
        """Run a step on the vectors in `fed`."""
        for cells in self._cells:
            cells.forward(step)

    def end(self) -> None:
        """Drop the references to inputs and results."""
        for cells in self._cells:
            cells.end()

    def start_backward(self, hidden: Tensor, cell: Tensor) -> None:
        """Prepare the backward pass, as `Cells`; arguments are ``(layers, batch, hidden)``."""
        for cells, both, *states in zip(self._cells, self._recurrent, hidden, cell, strict=True):
            cells.start_backward(PreparedWeight(both.t(), result=hidden.dtype), *states)

    def backward(self, step: int, grad: Tensor, more: Tensor | None) -> Tensor:
        """Return the gradient of what a step was fed, ``(rows, hidden)``.

        Args:
            step: steps come in reverse order.
            grad: of the queries, ``(rows, hidden)``.
            more: a second part of it, or None.
        """
        arriving: Tensor | None = grad
        for cells in reversed(self._cells):
            entered = cells.backward(step, arriving, more)
            arriving, more = None, entered[:, : grad.size(1)]
        assert more is not None
        return more

    def finish_backward(self) -> tuple[Tensor, list[Tensor]]:
        """Return gradients of the embeddings, and of the weights in the order given."""
        dtype, repeats = self._plan.dtype, self._plan.repeats
        grads: list[Tensor] = []
        for layer, cells in enumerate(self._cells):
            both, bias = cells.finish_backward()
            below, recurrent = both.chunk(2, dim=1)
            if layer == 0:
                grad = repeats.collect(cells.gates_gradient(repeats.places is not None))
                given = below.dtype
                grad_embedded = product(grad, self._lowest.t(), None, dtype, given)
                lowest = weight_gradient(grad, self._embedded, dtype, given)
                below = torch.cat([double_candidate_(lowest), below], dim=1)
            grads += [below, recurrent, bias, bias]
        return grad_embedded, grads


def _readout(plan: Plan, bank: Tensor, parameters: dict[str, Tensor], layers: _Layers) -> Readout:
    """Return the readout of a batch, given the attention's parameters by name."""
    attention = RecurrentAttention(
        plan.steps,
        bank,
        plan.padding,
        plan.alpha,
        parameters,
        plan.dtype,
        layers.queries,
        layers.cast_queries,
    )
    lengths = None if plan.padding is None else (plan.padding == 0).sum(dim=1)
    return make_readout(plan.steps, attention, plan.above, layers.fed, lengths)


class InputFeedRecurrence(torch.autograd.Function):
    """The recurrence over all target steps (Luong et al. 2015, section 3.3).

    ``apply(plan, embedded, bank, hidden, cell, feed, *weights)`` with embeddings
    ``(rows, embedding)``, source vectors ``(batch, src_len, hidden)``, first hidden and cell states
    ``(layers, batch, hidden)``, the first input feed ``(batch, hidden)``, and the weights of the
    LSTM, then of the attention. Returns packed outputs ``(total, hidden)``, attention
    ``(steps, batch, src_len)``, and the last hidden and cell states.
    """

    @staticmethod
    def forward(
        ctx: Any,
        plan: Plan,
        embedded: Tensor,
        bank: Tensor,
        hidden: Tensor,
        cell: Tensor,
        feed: Tensor,
        *weights: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        split = len(weights) - len(plan.attention_names)
        names = dict(zip(plan.attention_names, weights[split:], strict=True))
        last = hidden.clone(), cell.clone()
        layers = _Layers(plan, embedded, weights[:split], last)
        readout = _readout(plan, bank, names, layers)
        layers.begin(hidden, cell, feed)
        for step in range(len(plan.steps.sizes)):
            layers.forward(step)
            readout.forward(step)
        layers.end()
        outputs, attentional, attention = readout.end()
        ctx.plan, ctx.readout, ctx.layers = plan, readout, layers
        ctx.save_for_backward(attentional, attention)
        ctx.set_materialize_grads(False)
        return outputs, attention, *last

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any,
        grad_outputs: Tensor | None,
        grad_attention: Tensor | None,
        grad_hidden: Tensor | None,
        grad_cell: Tensor | None,
    ) -> tuple[Tensor | None, ...]:
        plan: Plan = ctx.plan
        readout: Readout = ctx.readout
        layers: _Layers = ctx.layers
        attentional, attention = ctx.saved_tensors
        steps = plan.steps
        states = (layers.count, steps.batch, attentional.size(1))
        grad = torch.zeros_like(attentional) if grad_outputs is None else _copy(grad_outputs)
        hidden = attentional.new_zeros(states) if grad_hidden is None else _copy(grad_hidden)
        cell = attentional.new_zeros(states) if grad_cell is None else _copy(grad_cell)
        if grad_attention is not None:
            grad_attention = grad_attention.contiguous()
        fed: Tensor | None = None
        with torch.autocast(attentional.device.type, enabled=False):  # as in the forward pass
            readout.start_backward(attentional, attention, grad, grad_attention)
            layers.start_backward(hidden, cell)
            for step in reversed(range(len(steps.sizes))):
                fed = layers.backward(step, *readout.backward(step, fed))
            grad_bank, by_name = readout.finish_backward()
            grad_embedded, grads = layers.finish_backward()
        grads += [by_name[name] for name in plan.attention_names]
        grad_feed = attentional.new_zeros(steps.batch, attentional.size(1))
        if fed is not None:
            grad_feed[: fed.size(0)] = fed
        return None, grad_embedded, grad_bank, hidden, cell, grad_feed, *grads


def _copy(gradient: Tensor) -> Tensor:
    """Return a contiguous copy of a gradient, to be overwritten."""
    return gradient.clone(memory_format=torch.contiguous_format)
