"""LSTM encoder and input-feeding decoder on padded batches, for CUDA graphs.

The shapes of the packed path (`encoder.py`, `decoder.py`) depend on the lengths. Here every
sentence takes every step, and masks remove padding: batches of one shape start the same kernels,
and no step waits for the GPU. Weights and results are those of the packed path. `static_steps.py`
has the single steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from onmt_entmax.nn.lstm.cells import dropout_mask
from onmt_entmax.nn.lstm.decoder import FastInputFeedRNNDecoder
from onmt_entmax.nn.lstm.encoder import FastRNNEncoder
from onmt_entmax.nn.lstm.static_steps import (
    AdditiveAttention,
    DotAttention,
    cell_backward,
    cell_forward,
)
from onmt_entmax.sparse.arguments import alpha_text
from onmt_entmax.sparse.backends import LARGEST_ALPHA


@dataclass(frozen=True)
class Masks:
    """Dropout factors of a batch; None where there is no dropout.

    Attributes:
        encoder: between encoder layers, ``(layers - 1, source, rows, directions * hidden)``.
        between: between decoder layers, ``(layers - 1, target, rows, hidden)``.
        above: on the attentional vectors, ``(target, rows, hidden)``.
    """

    encoder: Tensor | None = None
    between: Tensor | None = None
    above: Tensor | None = None


def reason_against(encoder: nn.Module, decoder: nn.Module) -> str | None:
    """Return why the static path cannot train a model, or None if it can."""
    if not isinstance(encoder, FastRNNEncoder) or not encoder.is_covered():
        return "the encoder is not an LSTM of type rnn or brnn without positions"
    if not isinstance(decoder, FastInputFeedRNNDecoder) or not decoder.is_covered():
        return "the decoder is not an input-feeding LSTM with global attention"
    alpha = decoder.attention_alpha()
    if alpha > LARGEST_ALPHA:
        return f"the attention's alpha is {alpha_text(alpha)}, above {LARGEST_ALPHA:g}"
    if encoder.matmul_dtype is not None:
        return "`matmul_dtype: bfloat16` is for CPUs; on a GPU, `tf32` is faster"
    return None


def draw_masks(
    encoder: FastRNNEncoder, decoder: FastInputFeedRNNDecoder, source: int, target: int, rows: int
) -> Masks:
    """Draw dropout factors for a batch; each module's mode and probability decide.

    Args:
        encoder: decides about `Masks.encoder`.
        decoder: decides about `Masks.between` and `Masks.above`.
        source: number of source positions.
        target: number of decoder steps.
        rows: number of sentences.
    """
    like = next(decoder.parameters())
    rnn, hidden = encoder.rnn, decoder.hidden_size
    size = rnn.hidden_size * (2 if rnn.bidirectional else 1)
    masks: list[Tensor | None] = [None, None, None]
    if rnn.training and rnn.num_layers > 1:
        masks[0] = dropout_mask((rnn.num_layers - 1, source, rows, size), rnn.dropout, like)
    layers = decoder.rnn.num_layers - 1
    if decoder.rnn.dropout.training and layers:
        masks[1] = dropout_mask((layers, target, rows, hidden), decoder.rnn.dropout.p, like)
    if decoder.dropout.training:
        masks[2] = dropout_mask((target, rows, hidden), decoder.dropout.p, like)
    return Masks(*masks)


def static_outputs(
    encoder: FastRNNEncoder,
    decoder: FastInputFeedRNNDecoder,
    source: Tensor,
    lengths: Tensor,
    inputs: Tensor,
    masks: Masks | None = None,
) -> Tensor:
    """Return decoder outputs for padded sentences, with teacher forcing.

    Args:
        encoder: one that `reason_against` accepts.
        decoder: likewise.
        source: ids ``(source, rows)``, int64.
        lengths: source lengths ``(rows,)``, int64, at least 1, on the same device.
        inputs: decoder input ids ``(target, rows)``.
        masks: dropout factors; drawn if None.

    Returns:
        ``(target, rows, hidden)``, also for padding.
    """
    if masks is None:
        masks = draw_masks(encoder, decoder, len(source), *inputs.shape)
    states, bank = static_encode(encoder, source, lengths, masks.encoder)
    return static_decode(decoder, inputs, bank, lengths, states, masks)


def static_encode(
    encoder: FastRNNEncoder, source: Tensor, lengths: Tensor, masks: Tensor | None
) -> tuple[tuple[Tensor, Tensor], Tensor]:
    """Encode padded sentences.

    Args:
        encoder: one that `reason_against` accepts.
        source: ids ``(source, rows)``.
        lengths: ``(rows,)``.
        masks: `Masks.encoder`.

    Returns:
        The last hidden and cell states ``(layers * directions, rows, hidden)``, and the source
        vectors ``(source, rows, hidden)``, zero at padding.
    """
    rnn = encoder.rnn
    states = encoder.embeddings(source.unsqueeze(2))
    live = torch.arange(len(source), device=source.device).unsqueeze(1) < lengths
    live = live.to(states.dtype).expand(2 if rnn.bidirectional else 1, -1, -1).contiguous()
    lasts = []
    for layer, weights in enumerate(encoder.layer_weights()):
        if layer > 0 and masks is not None:
            states = states * masks[layer - 1]
        with torch.autocast(states.device.type, enabled=False):
            states, last = _EncoderLayer.apply(states, live, *weights)
        lasts.append(last)
    hidden, cell = torch.cat(lasts, dim=1).unbind(0)
    final = (hidden, cell)
    if encoder.use_bridge:
        final = encoder._bridge(final)
    return final, states


def static_decode(
    decoder: FastInputFeedRNNDecoder,
    inputs: Tensor,
    bank: Tensor,
    lengths: Tensor,
    states: tuple[Tensor, ...],
    masks: Masks,
) -> Tensor:
    """Return the outputs ``(target, rows, hidden)`` of all decoder steps.

    Args:
        decoder: one that `reason_against` accepts.
        inputs: ids ``(target, rows)``.
        bank: source vectors ``(source, rows, hidden)``.
        lengths: source lengths ``(rows,)``.
        states: the encoder's last hidden and cell states.
        masks: dropout factors.
    """
    if decoder.bidirectional_encoder:
        states = tuple(torch.cat([part[0::2], part[1::2]], dim=2) for part in states)
    # As in OpenNMT-py, a deeper encoder passes on the states of its lowest layers.
    hidden, cell = (part[: decoder.rnn.num_layers] for part in states)
    names, attention = zip(*decoder.attn.named_parameters(), strict=True)
    cells = decoder.lstm_weights()
    additive = decoder.attn.attn_type == "mlp"
    plan = _Plan(lengths, decoder.attention_alpha(), additive, names, masks)
    embedded = decoder.embeddings(inputs.unsqueeze(2))
    bank = bank.transpose(0, 1).contiguous()
    with torch.autocast(embedded.device.type, enabled=False):
        return _Decoder.apply(plan, embedded, bank, hidden, cell, *cells, *attention)


# --- encoder: one layer at a time, both directions in one batched product ---


def _at(x: Tensor, first: int, second: int) -> Tensor:
    """Return a view of one place for each direction: ``(directions, rows, ...)``.

    Args:
        x: ``(directions, places, rows, ...)``, contiguous.
        first: place of the first direction.
        second: place of the second direction, if there is one; `places + second` exceeds `first`.
    """
    if len(x) == 1:
        return x[:, first]
    step = x.stride(1)
    stride = x.stride(0) + (second - first) * step
    start = x.storage_offset() + first * step
    return x.as_strided((2, *x.shape[2:]), (stride, *x.stride()[2:]), start)


class _EncoderLayer(torch.autograd.Function):
    """An encoder layer of one or two directions.

    ``apply(x, live, *weights)`` takes inputs ``(source, rows, in)``, 1 for tokens and 0 for padding
    ``(directions, source, rows)``, and four weights for each direction. It returns the states
    ``(source, rows, directions * hidden)``, zero at padding, and the last hidden and cell states
    ``(2, directions, rows, hidden)``. The second direction reads from right to left. A row keeps
    its state at padding; before its first token the state is zero.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, live: Tensor, *weights: Tensor) -> tuple[Tensor, Tensor]:
        source, rows, size = x.shape
        count = len(live)
        enter, recurrent, first, second = (torch.stack(weights[at::4]) for at in range(4))
        hidden = recurrent.size(2)
        flat = x.reshape(1, source * rows, size).expand(count, -1, -1)
        bias = (first + second).unsqueeze(1)
        gates = torch.baddbmm(bias, flat, enter.transpose(1, 2)).view(count, source, rows, -1)
        # Place t precedes position t in the first direction, and follows it in the second.
        states = x.new_zeros(count, source + 1, rows, hidden)
        cells = torch.zeros_like(states)
        back = recurrent.transpose(1, 2)
        for at in range(source):
            now = _at(gates, at, source - 1 - at)
            before, after = (at, source - at), (at + 1, source - 1 - at)
            now.baddbmm_(_at(states, *before), back)
            cell_forward(
                now,
                _at(cells, *before),
                _at(cells, *after),
                _at(states, *before),
                _at(states, *after),
                _at(live, at, source - 1 - at),
            )
        ctx.gates, ctx.states, ctx.cells = gates, states, cells
        ctx.save_for_backward(x, live, enter, recurrent)
        ctx.used = False
        made = _at_all(states, 1, 0) * live.unsqueeze(3)
        outputs = torch.cat(tuple(made), dim=2) if count == 2 else made[0]
        ends = source, 0
        return outputs, torch.stack([_at(states, *ends), _at(cells, *ends)])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_outputs: Tensor, grad_last: Tensor) -> tuple[Tensor | None, ...]:
        _refuse_second_backward(ctx)
        x, live, enter, recurrent = ctx.saved_tensors
        gates, states, cells = ctx.gates, ctx.states, ctx.cells
        source, rows, size = x.shape
        count, hidden = len(live), recurrent.size(2)
        with torch.autocast(x.device.type, enabled=False):
            parts = grad_outputs.view(source, rows, count, hidden).permute(2, 0, 1, 3)
            above = parts * live.unsqueeze(3)
            above = above.contiguous()
            grad_state = grad_last[0].clone(memory_format=torch.contiguous_format)
            grad_cell = grad_last[1].clone(memory_format=torch.contiguous_format)
            for at in reversed(range(source)):
                places = at, source - 1 - at
                now = _at(gates, *places)
                cell_backward(
                    now,
                    _at(cells, at, source - at),
                    _at(cells, at + 1, source - 1 - at),
                    grad_state,
                    _at(above, *places),
                    grad_cell,
                    _at(live, *places),
                )
                grad_state.baddbmm_(now, recurrent)
            grad = gates.view(count, source * rows, -1)
            turned = grad.transpose(1, 2)
            flat = x.reshape(1, source * rows, size).expand(count, -1, -1)
            grad_enter = torch.bmm(turned, flat)
            grad_recurrent = torch.bmm(turned, _at_all(states, 0, 1).flatten(1, 2))
            grad_bias = grad.sum(1)
            grad_x = grad[0] @ enter[0]
            for direction in range(1, count):
                grad_x.addmm_(grad[direction], enter[direction])
        grads: list[Tensor] = []
        for direction in range(count):
            # The same object twice: autograd would copy two views of the same memory.
            bias = grad_bias[direction]
            grads += [grad_enter[direction], grad_recurrent[direction], bias, bias]
        return grad_x.view_as(x), None, *grads


def _at_all(x: Tensor, first: int, second: int) -> Tensor:
    """Return a view of all places but one for each direction.

    Args:
        x: ``(directions, places + 1, rows, size)``, contiguous.
        first: first place of the first direction, 0 or 1.
        second: first place of the second direction, 0 or 1.

    Returns:
        ``(directions, places, rows, size)``; `flatten(1, 2)` copies nothing.
    """
    step = x.stride(1)
    stride = x.stride(0) + (second - first) * step
    size = (len(x), x.size(1) - 1, *x.shape[2:])
    return x.as_strided(size, (stride, *x.stride()[1:]), x.storage_offset() + first * step)


def _refuse_second_backward(ctx: Any) -> None:
    """Refuse a second backward pass: the first overwrites the saved activations."""
    if ctx.used:
        raise RuntimeError("the static path allows one backward pass only")
    ctx.used = True


# --- decoder ---


@dataclass(frozen=True)
class _Plan:
    """Arguments of `_Decoder` without gradients.

    Attributes:
        lengths: source lengths ``(rows,)``.
        alpha: attention alpha.
        additive: whether the attention is `mlp`.
        names: names of the attention's weights, which follow the LSTM's.
        masks: dropout factors.
    """

    lengths: Tensor
    alpha: float
    additive: bool
    names: tuple[str, ...]
    masks: Masks


class _Decoder(torch.autograd.Function):
    """The input-feeding recurrence (Luong et al. 2015, section 3.3) over all decoder steps.

    ``apply(plan, embedded, bank, hidden, cell, *weights)`` takes embeddings ``(target, rows,
    embedding)``, contiguous source vectors ``(rows, source, hidden)``, initial states ``(layers,
    rows, hidden)``, and the weights of the LSTM and of the attention. It returns the outputs
    ``(target, rows, hidden)``, also for padding.
    """

    @staticmethod
    def forward(
        ctx: Any,
        plan: _Plan,
        embedded: Tensor,
        bank: Tensor,
        hidden: Tensor,
        cell: Tensor,
        *weights: Tensor,
    ) -> Tensor:
        steps, rows, size = embedded.shape
        split = len(weights) - len(plan.names)
        layers = [weights[at : at + 4] for at in range(0, split, 4)]
        named = dict(zip(plan.names, weights[split:], strict=True))
        kind = AdditiveAttention if plan.additive else DotAttention
        attention = kind(bank, plan.lengths, plan.alpha, named, steps, plan.masks.above)
        width, top = hidden.size(2), len(layers) - 1
        # Factors of each step: the fed vector or the layer below, then the previous state.
        inputs = bank.new_zeros(len(layers), steps + 1, rows, 2 * width)
        cells = bank.new_empty(len(layers), steps + 1, rows, width)
        inputs[:, 0, :, width:] = hidden
        cells[:, 0] = cell
        flat = embedded.reshape(-1, size)
        gates, both = [], []
        for layer, (enter, recurrent, first, second) in enumerate(layers):
            bias = first + second
            if layer == 0:
                made = torch.addmm(bias, flat, enter[:, :size].t()).view(steps, rows, -1)
                enter = enter[:, size:]
            else:
                made = bias.expand(steps, rows, -1).contiguous()
            gates.append(made)
            both.append(torch.cat([enter, recurrent], dim=1))
        for step in range(steps):
            for layer in range(len(layers)):
                now = gates[layer][step]
                now.addmm_(inputs[layer, step], both[layer].t())
                factors = None
                if layer == top:
                    second = attention.queries(step)
                else:
                    second = inputs[layer + 1, step, :, :width]
                    factors = _factors(plan.masks.between, layer, step)
                cell_forward(
                    now.unsqueeze(0),
                    cells[layer, step].unsqueeze(0),
                    cells[layer, step + 1].unsqueeze(0),
                    None,
                    inputs[layer, step + 1, :, width:].unsqueeze(0),
                    None,
                    second.unsqueeze(0),
                    factors,
                )
            attention.forward(step, inputs[0, step + 1, :, :width])
        ctx.plan, ctx.attention, ctx.gates, ctx.both = plan, attention, gates, both
        ctx.inputs, ctx.cells, ctx.used = inputs, cells, False
        ctx.save_for_backward(embedded, layers[0][0])
        outputs = attention.outputs
        # Without detach, ctx and its own result would hold each other forever.
        attention.outputs = outputs.detach()
        return outputs

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        _refuse_second_backward(ctx)
        plan: _Plan = ctx.plan
        attention, gates, both, cells = ctx.attention, ctx.gates, ctx.both, ctx.cells
        embedded, enter = ctx.saved_tensors
        steps, rows, size = embedded.shape
        count, width = len(gates), cells.size(3)
        with torch.autocast(embedded.device.type, enabled=False):
            attention.start_backward(grad_outputs.contiguous())
            grad_inputs = [cells.new_zeros(rows, 2 * width) for _ in range(count)]
            grad_cells = [cells.new_zeros(1, rows, width) for _ in range(count)]
            grad_queries = cells.new_empty(rows, width)
            for step in reversed(range(steps)):
                attention.backward(step, grad_inputs[0][:, :width], grad_queries)
                above, factors = grad_queries, None
                for layer in reversed(range(count)):
                    now = gates[layer][step]
                    cell_backward(
                        now.unsqueeze(0),
                        cells[layer, step].unsqueeze(0),
                        cells[layer, step + 1].unsqueeze(0),
                        grad_inputs[layer][:, width:].unsqueeze(0),
                        above.unsqueeze(0),
                        grad_cells[layer],
                        None,
                        factors,
                    )
                    torch.mm(now, both[layer], out=grad_inputs[layer])
                    above = grad_inputs[layer][:, :width]
                    if layer:
                        factors = _factors(plan.masks.between, layer - 1, step)
            grad_bank, by_name = attention.finish_backward()
            grads: list[Tensor] = []
            for layer in range(count):
                grad = gates[layer].view(steps * rows, -1)
                taken = ctx.inputs[layer, :steps].view(steps * rows, -1)
                below, recurrent = (grad.t() @ taken).chunk(2, dim=1)
                if layer == 0:
                    lowest = enter[:, :size]
                    grad_embedded = (grad @ lowest).view_as(embedded)
                    part = grad.t() @ embedded.reshape(-1, size)
                    below = torch.cat([part, below], dim=1)
                bias = grad.sum(0)
                grads += [below, recurrent, bias, bias]
            grad_hidden = torch.stack([grad[:, width:] for grad in grad_inputs])
            grad_cell = torch.cat(grad_cells)
        grads += [by_name[name] for name in plan.names]
        return None, grad_embedded, grad_bank, grad_hidden, grad_cell, *grads


def _factors(masks: Tensor | None, layer: int, step: int) -> Tensor | None:
    return None if masks is None else masks[layer, step]
