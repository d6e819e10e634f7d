"""OpenNMT-py's LSTM encoder and input-feeding decoder, as one recurrence for CPU, GPU and search.

Autograd goes back through the steps, but weights are `Deferred`: their gradients are one product
over all steps each (for LSTMs without attention: Appleyard et al. 2016). Inputs of the lowest layer
are multiplied before the steps, on a CPU once for each distinct token.

On a CPU, rows are sorted by length, and a step computes those that have not ended. On a GPU, shapes
depend on the batch's shape alone, and nothing waits for a value, so CUDA graphs can record it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, pad

from onmt_entmax.nn.attention import Sources, attention_steps, steps_for
from onmt_entmax.nn.products import Deferred, PreparedWeight, anchor, linear
from onmt_entmax.opennmt import InputFeedRNNDecoder, RNNEncoder


@dataclass(frozen=True)
class Steps:
    """The rows of each step of a recurrence over sentences of some lengths.

    A packed tensor holds the rows of step 0, then those of step 1, and so on.

    Attributes:
        sizes: rows of each step: the batch's first ones, which have not ended.
        places: position of each packed row in a flattened ``(steps, batch)``, ``(total,)``.
        live: which packed rows are no padding, ``(total, 1)``; None if all are.
        last: packed row of each sentence's last step, ``(batch,)``, where there may be padding.
    """

    sizes: list[int]
    places: Tensor
    live: Tensor | None
    last: Tensor

    @staticmethod
    def of(lengths: Tensor, count: int, fixed: bool) -> Steps:
        """Return the steps of sentences.

        Args:
            lengths: ``(batch,)`` int64; longest first unless `fixed`.
            count: number of steps.
            fixed: whether all rows take all steps, so that no shape depends on the lengths.
        """
        batch, device = len(lengths), lengths.device
        live = torch.arange(count, device=device).unsqueeze(1) < lengths
        last = (lengths - 1) * batch + torch.arange(batch, device=device)
        if fixed:
            places = torch.arange(count * batch, device=device)
            return Steps([batch] * count, places, live.view(-1, 1), last)
        return Steps(live.sum(1).tolist(), live.flatten().nonzero().squeeze(1), None, last)

    def reversed(self, packed: Tensor) -> Tensor:
        """Return the rows ``(total, size)`` of steps of equal size in reverse order."""
        return packed.view(len(self.sizes), -1, packed.size(1)).flip(0).view_as(packed)


class _Layer(Deferred):
    """The weight ``(..., 4 * hidden, in)`` of a layer, which `_Step` multiplies."""

    def __init__(
        self, weight: Tensor, summand: Tensor, sizes: list[int], dtype: torch.dtype | None
    ) -> None:
        super().__init__(weight, summand, sizes, dtype)
        self.kind = steps_for(self.summands[0] if sizes else weight.detach())


class _Step(torch.autograd.Function):
    """One step of a layer; what follows in the graph is once differentiable.

    ``apply(layer, anchor, number, factors, x, hidden, cell)`` with the number of the step, dropout
    factors of the output or None, the input ``(rows or more, in)`` or None, and the states
    ``(..., batch, hidden)``, of which the first rows take the step. Returns the output
    ``(..., rows, hidden)``, and the states ``(..., batch, hidden)``.
    """

    @staticmethod
    def forward(
        ctx: Any,
        layer: _Layer,
        anchor: Tensor,
        number: int,
        factors: Tensor | None,
        x: Tensor | None,
        hidden: Tensor,
        cell: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]:
        inputs = layer.inputs[number]
        size = inputs.size(-2)
        before = _first(cell, size)
        below = 0 if x is None else x.size(-1)
        if x is not None:
            inputs[..., :below].copy_(_first(x, size))
        inputs[..., below:].copy_(_first(hidden, size))
        activations, output, *made = layer.kind.cell_forward(
            layer.multiply(inputs), layer.summands[number], before, factors
        )
        ctx.layer, ctx.number, ctx.factors, ctx.activations = layer, number, factors, activations
        ctx.entered = 0 if x is None else len(x)
        ctx.save_for_backward(before, made[1])
        return output, _with_ended(made[0], hidden), _with_ended(made[1], cell)

    @staticmethod
    def backward(
        ctx: Any, grad: Tensor, grad_hidden: Tensor, grad_cell: Tensor
    ) -> tuple[Tensor | None, ...]:
        layer, number, (before, after) = ctx.layer, ctx.number, ctx.saved_tensors
        size, width = before.shape[-2:]
        layer.start_backward()
        grads = grad, _first(grad_hidden, size), _first(grad_cell, size)
        cell = layer.kind.cell_backward(
            ctx.activations, before, after, ctx.factors, grads, layer.gradients[number]
        )
        inputs = layer.go_back(number)
        if not ctx.entered:
            hidden, x = inputs, None
        else:
            x, hidden = inputs.split([inputs.size(1) - width, width], 1)
            if ctx.entered > size:
                x = pad(x, (0, 0, 0, ctx.entered - size))
        hidden, cell = _with_ended(hidden, grad_hidden), _with_ended(cell, grad_cell)
        return None, None, None, None, x, hidden, cell


def _first(batch: Tensor, size: int) -> Tensor:
    """Return the first rows of a batch ``(..., rows, hidden)``."""
    return batch if batch.size(-2) == size else batch[..., :size, :]


def _with_ended(states: Tensor, batch: Tensor) -> Tensor:
    """Return new states of the first rows, and the batch's of those that have ended."""
    size = states.size(-2)
    return states if size == batch.size(-2) else torch.cat([states, batch[..., size:, :]], -2)


def dropout_mask(shape: tuple[int, ...], module: nn.Module | None, like: Tensor) -> Tensor | None:
    """Return dropout factors: 0 with a module's probability p, else ``1 / (1 - p)``.

    Each 64-bit random number of the device's generator gives four factors, which is eleven times
    faster than `bernoulli_`. The probability is rounded to a multiple of 2^-16.

    Args:
        shape: of the factors.
        module: an `nn.Dropout` or `nn.LSTM`. The result is None for None, without dropout, and
            in evaluation mode.
        like: gives type and device.
    """
    probability = module.dropout if isinstance(module, nn.RNNBase) else getattr(module, "p", 0)
    levels = 0
    if module is not None and module.training:
        levels = min(round(probability * 2**16), 2**16 - 1)
    count = torch.Size(shape).numel()
    if not levels:
        return None
    draws = torch.empty((count + 3) // 4, dtype=torch.int64, device=like.device)
    kept = draws.random_(-(2**63), None).view(torch.int16)[:count] >= levels - 2**15
    return kept.to(like.dtype).mul_(2**16 / (2**16 - levels)).view(shape)


def _split_mask(
    shape: tuple[int, ...], module: nn.Module | None, like: Tensor, sizes: list[int]
) -> Sequence[Tensor | None]:
    """Return the dropout factors of each step."""
    mask = dropout_mask(shape, module, like)
    return [None] * len(sizes) if mask is None else mask.split(sizes)


def _pick(x: Tensor, rows: Tensor | None) -> Tensor:
    """Return rows ``(n,)`` of a matrix, or all; its gradient is quicker than `index_select`'s."""
    return x if rows is None else embedding(rows, x)


def _embed(embeddings: nn.Module, tokens: Tensor, fixed: bool) -> tuple[Tensor, Tensor | None]:
    """Return embeddings of tokens ``(total, features)``, and the row of each token or None.

    Unless shapes are fixed, each distinct token has one row: batches repeat their tokens (64 words
    have a thousand characters, a hundred of them distinct).
    """
    rows = None
    if not fixed and tokens.size(1) == 1:
        tokens, rows = tokens.unique(return_inverse=True)
        tokens, rows = tokens.unsqueeze(1), rows.squeeze(1)
    return embeddings(tokens.unsqueeze(0))[0], rows


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


@dataclass(frozen=True)
class SourceMemory:
    """Keys and values of some sentences' sources, one copy for each sentence."""

    keys: Tensor
    """``(sentences, source length, hidden)``"""
    values: Tensor
    """``(sentences, source length, hidden)``"""
    lengths: Tensor
    """``(sentences,)``"""

    def __len__(self) -> int:
        return len(self.lengths)

    def select(self, sentences: Tensor) -> SourceMemory:
        """Return the memory of chosen sentences ``(chosen,)`` int64."""
        sentences = sentences.to(self.lengths.device)
        lengths = self.lengths.index_select(0, sentences)
        longest = int(lengths.max())
        keys = self.keys[:, :longest].index_select(0, sentences)
        values = self.values[:, :longest].index_select(0, sentences)
        return SourceMemory(keys, values, lengths)

    @staticmethod
    def join(parts: Sequence[SourceMemory]) -> SourceMemory:
        """Concatenate the sentences of all parts."""
        longest = max(part.keys.size(1) for part in parts)

        def joined(tensors: list[Tensor]) -> Tensor:
            return torch.cat([pad(each, (0, 0, 0, longest - each.size(1))) for each in tensors])

        return SourceMemory(
            joined([part.keys for part in parts]),
            joined([part.values for part in parts]),
            torch.cat([part.lengths for part in parts]),
        )


class DecoderStep:
    """A decoder prepared for the steps of a search; later changes of its weights are ignored.

    The state of a row is one vector: the input feed, then the hidden states of all layers, then
    their cell states. Each token's part of the lowest layer's gates is computed once, if the
    vocabulary is not large.

    Args:
        decoder: with attention that can project, covered by the recurrence.
        vocabulary_size: of the target.
        dtype: of the factors of products, see `product`.
    """

    @torch.inference_mode()
    def __init__(
        self,
        decoder: FastInputFeedRNNDecoder,
        vocabulary_size: int,
        dtype: torch.dtype | None = None,
    ) -> None:
        self._dtype = dtype
        self._attention, self._embeddings = decoder.attn, decoder.embeddings
        self._hidden = decoder.hidden_size
        self._layers: list[tuple[PreparedWeight, Tensor]] = []
        for number, layer in enumerate(decoder.rnn.layers):
            bias, below = layer.bias_ih + layer.bias_hh, layer.weight_ih
            if number == 0:
                enter, below = below.split([below.size(1) - self._hidden, self._hidden], 1)
                self._lowest = PreparedWeight(enter, bias)
            matrix = torch.cat([below, layer.weight_hh], 1)
            self._layers.append((PreparedWeight(matrix, dtype=dtype), bias.unsqueeze(0)))
        self._table: Tensor | None = None
        # Of a larger vocabulary, each step of a search computes the parts of its tokens.
        if vocabulary_size * enter.size(0) * enter.element_size() <= 1 << 26:
            tokens = torch.arange(vocabulary_size, device=enter.device)
            self._table = self._lowest(self._embeddings(tokens.view(1, -1, 1))[0])
        from_query = decoder.attn.linear_out.weight[:, self._hidden :]
        self._from_query = PreparedWeight(from_query, dtype=dtype)

    def memory(self, bank: Tensor, lengths: Tensor) -> SourceMemory:
        """Return keys and values of a memory bank ``(source length, sentences, hidden)``."""
        keys, values, _ = self._attention.project(bank.transpose(0, 1).contiguous(), self._dtype)
        return SourceMemory(keys, values, lengths.to(bank.device, torch.int64))

    def first(self, hidden: Tensor, cell: Tensor, fed: Tensor) -> Tensor:
        """Return the first states of the rows.

        Args:
            hidden: ``(layers, rows, hidden)``.
            cell: likewise.
            fed: ``(rows, hidden)``.
        """
        return torch.cat([fed, *hidden, *cell], dim=1)

    def __call__(
        self, states: Tensor, tokens: Tensor, memory: SourceMemory, owners: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Append a token to each row.

        Args:
            states: ``(rows, (1 + 2 * layers) * hidden)``.
            tokens: ``(rows,)`` int64.
            memory: of the rows' sentences.
            owners: sentence of each row, ``(rows,)`` int64.

        Returns:
            Attentional vectors ``(rows, hidden)``, attention ``(rows, source length)``, and new
            states.
        """
        if self._table is not None:
            summand = self._table.index_select(0, tokens)
        else:
            summand = self._lowest(self._embeddings(tokens.view(1, -1, 1))[0])
        x, *parts = states.split(self._hidden, dim=1)
        count, hidden, cell = len(self._layers), [], []
        steps = steps_for(x)
        for layer, (multiply, bias) in enumerate(self._layers):
            gates = multiply.products(torch.cat([x, parts[layer]], 1))
            added = bias.expand_as(gates) if layer else summand
            _, x, *made = steps.cell_forward(gates, added, parts[count + layer].contiguous(), None)
            hidden.append(made[0])
            cell.append(made[1])
        alpha = self._attention.alpha
        sources = Sources(memory.keys, memory.values, memory.lengths, owners, alpha)
        weights = x.new_zeros(len(x), memory.keys.size(1))
        from_query = self._from_query.products(x)
        output = steps_for(x, sources).attend(sources, x, from_query, None, weights)
        return output, weights, torch.cat([output, *hidden, *cell], dim=1)
