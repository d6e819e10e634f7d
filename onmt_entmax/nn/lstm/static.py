"""The recurrences on padded rows, for a GPU: no step waits for the device or depends on a value.

The packed path (`encoder.py`, `decoder.py`) computes real positions alone, in shapes that follow
from the lengths. Here every row takes every step, masks say what counts, and all steps of all
batches of one shape are the same kernels: a CUDA graph can hold them. Weights and results are those
of the packed path.
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
from onmt_entmax.nn.lstm.static_cells import (
    AdditiveAttention,
    DotAttention,
    cell_backward,
    cell_forward,
)
from onmt_entmax.sparse.arguments import alpha_text

MOST_ALPHA = 2.0  # the kernels of attention know no steeper ones


@dataclass(frozen=True)
class Masks:
    """Dropout factors of a batch; None: no dropout there.

    Attributes:
        encoder: between the encoder's layers, ``(layers - 1, source, rows, directions * hidden)``.
        between: between the decoder's layers, ``(layers - 1, target, rows, hidden)``.
        above: of the attentional vectors, ``(target, rows, hidden)``.
    """

    encoder: Tensor | None = None
    between: Tensor | None = None
    above: Tensor | None = None


def reason_against(encoder: nn.Module, decoder: nn.Module) -> str | None:
    """Why the static path does not cover a model, or None."""
    if not isinstance(encoder, FastRNNEncoder) or not encoder._is_covered():
        return "the encoder is no LSTM of the types rnn and brnn without positions"
    if not isinstance(decoder, FastInputFeedRNNDecoder) or not decoder._is_covered():
        return "the decoder is no input-feeding LSTM with global attention"
    alpha = decoder._alpha()
    if alpha > MOST_ALPHA:
        return f"the attention's alpha is {alpha_text(alpha)}, above {MOST_ALPHA:g}"
    if encoder.matmul_dtype is not None:
        return "products in bfloat16 are not there yet"
    return None


def draw_masks(
    encoder: FastRNNEncoder, decoder: FastInputFeedRNNDecoder, source: int, target: int, rows: int
) -> Masks:
    """Fresh dropout factors for a batch, those that the modules' modes and probabilities ask for.

    Args:
        encoder: the encoder.
        decoder: the decoder.
        source: source positions.
        target: decoder steps.
        rows: sentences.
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
    """Decoder outputs of padded sentences, teacher-forced.

    Args:
        encoder: covered (`reason_against`).
        decoder: likewise.
        source: ids ``(source, rows)``, int64.
        lengths: source lengths ``(rows,)``, int64, at least 1, on the same device.
        inputs: decoder input ids ``(target, rows)``.
        masks: dropout factors; drawn if None.

    Returns:
        ``(target, rows, hidden)``, those of padding too.
    """
    if masks is None:
        masks = draw_masks(encoder, decoder, len(source), *inputs.shape)
    states, bank = static_encode(encoder, source, lengths, masks.encoder)
    return static_decode(decoder, inputs, bank, lengths, states, masks)


def static_encode(
    encoder: FastRNNEncoder, source: Tensor, lengths: Tensor, masks: Tensor | None
) -> tuple[tuple[Tensor, Tensor], Tensor]:
    """Last states ``(layers * directions, rows, hidden)`` and source vectors, zeros at padding.

    Args:
        encoder: covered.
        source: ids ``(source, rows)``.
        lengths: ``(rows,)``.
        masks: see `Masks.encoder`.
    """
    rnn = encoder.rnn
    states = encoder.embeddings(source.unsqueeze(2))
    live = torch.arange(len(source), device=source.device).unsqueeze(1) < lengths
    live = live.to(states.dtype).expand(2 if rnn.bidirectional else 1, -1, -1).contiguous()
    lasts = []
    for layer, weights in enumerate(encoder._layer_weights()):
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
    """Outputs ``(target, rows, hidden)`` from what `static_encode` gives.

    Args:
        decoder: covered.
        inputs: ids ``(target, rows)``.
        bank: source vectors ``(source, rows, hidden)``.
        lengths: source lengths ``(rows,)``.
        states: the encoder's last ones.
        masks: dropout factors.
    """
    if decoder.bidirectional_encoder:
        states = tuple(torch.cat([part[0::2], part[1::2]], dim=2) for part in states)
    # Of an encoder with more layers the lowest are taken, as OpenNMT-py takes them.
    hidden, cell = (part[: decoder.rnn.num_layers] for part in states)
    names, attention = zip(*decoder.attn.named_parameters(), strict=True)
    cells = [
        weight
        for layer in decoder.rnn.layers
        for weight in (layer.weight_ih, layer.weight_hh, layer.bias_ih, layer.bias_hh)
    ]
    plan = _Plan(lengths, decoder._alpha(), _is_additive(decoder.attn), names, masks)
    embedded = decoder.embeddings(inputs.unsqueeze(2))
    bank = bank.transpose(0, 1).contiguous()
    with torch.autocast(embedded.device.type, enabled=False):
        return _Decoder.apply(plan, embedded, bank, hidden, cell, *cells, *attention)


def _is_additive(attention: nn.Module) -> bool:
    return bool(attention.attn_type == "mlp")


# The encoder, a layer at a time, both directions in one batched product.


def _at(x: Tensor, first: int, second: int) -> Tensor:
    """What lies at a place of each direction: ``(directions, rows, ...)``, no copy.

    Args:
        x: ``(directions, places, rows, ...)``, contiguous.
        first: place of the first direction.
        second: of the second, if there is one; `places + second` is above `first`.
    """
    if len(x) == 1:
        return x[:, first]
    step = x.stride(1)
    stride = x.stride(0) + (second - first) * step
    start = x.storage_offset() + first * step
    return x.as_strided((2, *x.shape[2:]), (stride, *x.stride()[2:]), start)


class _EncoderLayer(torch.autograd.Function):
    """A layer of one or two directions.

    Inputs are the layer's inputs ``(source, rows, in)``, what is live ``(directions, source,
    rows)`` and four weights for each direction. Results are the states ``(source, rows, directions
    * hidden)``, zeros at padding, and the last hidden and cell states ``(2, directions, rows,
    hidden)``. The second direction takes the positions from last to first; a row keeps its state
    (of zeros, at first) where it has no token.
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
        # Place t of the first direction is before position t, of the second after it.
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
        _refuse_a_second_time(ctx)
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
            # One object for both biases: of two views of one memory, autograd would keep both.
            bias = grad_bias[direction]
            grads += [grad_enter[direction], grad_recurrent[direction], bias, bias]
        return grad_x.view_as(x), None, *grads


def _at_all(x: Tensor, first: int, second: int) -> Tensor:
    """All places but one: from `first` on in the first direction, from `second` in the other.

    Args:
        x: ``(directions, places + 1, rows, size)``, contiguous.
        first: 0 or 1.
        second: likewise.

    Returns:
        ``(directions, places, rows, size)``, no copy; its second and third dimension can be joined.
    """
    step = x.stride(1)
    stride = x.stride(0) + (second - first) * step
    size = (len(x), x.size(1) - 1, *x.shape[2:])
    return x.as_strided(size, (stride, *x.stride()[1:]), x.storage_offset() + first * step)


def _refuse_a_second_time(ctx: Any) -> None:
    """The way back overwrites what the way forth has kept."""
    if ctx.used:
        raise RuntimeError("the static path can go back through a graph once only")
    ctx.used = True


# The decoder.


@dataclass(frozen=True)
class _Plan:
    """What the decoder is told besides tensors with gradients.

    Attributes:
        lengths: source lengths ``(rows,)``.
        alpha: of the attention.
        additive: whether the attention is `mlp`.
        names: of the attention's weights, which follow the LSTM's.
        masks: dropout factors.
    """

    lengths: Tensor
    alpha: float
    additive: bool
    names: tuple[str, ...]
    masks: Masks


class _Decoder(torch.autograd.Function):
    """The recurrence over all target steps (Luong et al. 2015, section 3.3), padding included.

    Inputs are a plan, embeddings ``(target, rows, embedding)``, source vectors ``(rows, source,
    hidden)``, contiguous, first hidden and cell states ``(layers, rows, hidden)``, then the weights
    of the LSTM and of the attention. The result is the outputs ``(target, rows, hidden)``.
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
        # What a step multiplies: the fed vector, or the layer below, beside the own state.
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
        # A result that the graph holds itself would never be freed.
        attention.outputs = outputs.detach()
        return outputs

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        _refuse_a_second_time(ctx)
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
