"""What a step of an LSTM with attention computes between its products, in PyTorch and in C++.

`steps_for` chooses: C++ (`csrc/lstm.cpp`) for float32 on a CPU, Triton (`lstm_triton.py`) on a GPU,
PyTorch for everything else. All have the methods of `PlainSteps` and its results to rounding.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import torch
from torch import Tensor

from onmt_entmax.sparse import entmax


@dataclass(frozen=True)
class Sources:
    """What the rows of a step attend to.

    Attributes:
        keys: what queries are compared with, ``(sentences, source, hidden)``, contiguous.
        values: what context vectors are sums of, likewise.
        lengths: real source positions, ``(sentences,)`` int64, at least 1.
        owners: the sentence of each row, ``(rows,)`` int64; None: row i has sentence i.
        alpha: of entmax.
    """

    keys: Tensor
    values: Tensor
    lengths: Tensor
    owners: Tensor | None
    alpha: float

    def of_rows(self, rows: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return keys, values and lengths of each row."""
        parts = self.keys, self.values, self.lengths
        if self.owners is None:
            return tuple(part[:rows] for part in parts)  # type: ignore[return-value]
        return tuple(part.index_select(0, self.owners) for part in parts)  # type: ignore[return-value]


class PlainSteps:
    """The steps as PyTorch operations, for any device and type."""

    @staticmethod
    def cell_forward(
        gates: Tensor, summand: Tensor, cell: Tensor, factors: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Take an LSTM step (Hochreiter & Schmidhuber 1997, as `torch.nn.LSTMCell`).

        Args:
            gates: pre-activations ``(..., rows, 4 * hidden)``; replaced by the activations.
            summand: added to the pre-activations.
            cell: cell states ``(..., rows, hidden)``.
            factors: dropout of the output, ``(rows, hidden)``, or None.

        Returns:
            Output, which is the hidden state times the factors, hidden state, and cell state.
        """
        enter, forget, candidate, leave = gates.add_(summand).chunk(4, -1)
        enter, forget, candidate = enter.sigmoid_(), forget.sigmoid_(), candidate.tanh_()
        cell = torch.addcmul(enter * candidate, forget, cell)
        hidden = leave.sigmoid_() * cell.tanh()
        return hidden.clone() if factors is None else hidden * factors, hidden, cell

    @staticmethod
    def cell_backward(
        gates: Tensor,
        cell: Tensor,
        cell_after: Tensor,
        factors: Tensor | None,
        grads: tuple[Tensor, Tensor, Tensor],
        grad_gates: Tensor,
    ) -> Tensor:
        """Return the gradient of `cell`.

        Args:
            gates: activations.
            cell: before the step.
            cell_after: after it.
            factors: as in `cell_forward`.
            grads: of what `cell_forward` returned.
            grad_gates: receives the gradient of the pre-activations.
        """
        enter, forget, candidate, leave = gates.chunk(4, -1)
        output, hidden, inside = grads
        grad = hidden + (output if factors is None else output * factors)
        squashed = cell_after.tanh()
        inside = inside + grad * leave * (1 - squashed * squashed)
        parts = [
            inside * candidate * enter * (1 - enter),
            inside * cell * forget * (1 - forget),
            inside * enter * (1 - candidate * candidate),
            grad * squashed * leave * (1 - leave),
        ]
        torch.cat(parts, -1, out=grad_gates)
        return inside * forget

    @staticmethod
    def attend(
        sources: Sources, query: Tensor, product: Tensor, factors: Tensor | None, weights: Tensor
    ) -> Tensor:
        """Return attentional vectors ``tanh(sum_j p_j values_j + product) * factors``.

        p is entmax of the scores ``keys @ query`` (Luong et al. 2015, Eq. 5; see `AttentionSteps`).

        Args:
            sources: keys and values.
            query: ``(rows, hidden)``.
            product: the query times its weight, ``(rows, hidden)``.
            factors: dropout, ``(rows, hidden)``, or None.
            weights: receives p, ``(rows, source)``; zeros before.
        """
        keys, values, lengths = sources.of_rows(len(query))
        weights.copy_(entmax(_scores(query, keys, lengths), sources.alpha))
        output = torch.baddbmm(product.unsqueeze(1), weights.unsqueeze(1), values).squeeze(1).tanh()
        return output if factors is None else output * factors

    @staticmethod
    def attend_backward(
        sources: Sources,
        query: Tensor,
        factors: Tensor | None,
        weights: Tensor,
        output: Tensor,
        grad_output: Tensor,
        grad: Tensor,
        grad_scores: Tensor,
    ) -> Tensor:
        """Return the gradient of the query through the scores, ``(rows, hidden)``.

        Args:
            sources: as in `attend`.
            query: likewise.
            factors: likewise.
            weights: what `attend` wrote.
            output: what it returned.
            grad_output: gradient of that.
            grad: receives the gradient before the tanh, ``(rows, hidden)``.
            grad_scores: receives that of the scores, ``(rows, source)``; zeros before.
        """
        keys, values, lengths = sources.of_rows(len(query))
        if factors is not None:  # what is dropped has no gradient, so its output does not matter
            output = output / torch.where(factors == 0, 1.0, factors)
            grad_output = grad_output * factors
        grad.copy_(grad_output * (1 - output * output))
        grad_weights = torch.bmm(grad.unsqueeze(1), values.mT).squeeze(1)
        with torch.enable_grad():
            scores = _scores(query, keys, lengths).requires_grad_()
            again = entmax(scores, sources.alpha)
        grad_scores.copy_(torch.autograd.grad(again, scores, grad_weights)[0])
        return torch.bmm(grad_scores.unsqueeze(1), keys).squeeze(1)


def _scores(query: Tensor, keys: Tensor, lengths: Tensor) -> Tensor:
    # The other order, matrix times vector, is eleven times slower in MKL.
    scores = torch.bmm(query.unsqueeze(1), keys.mT).squeeze(1)
    padding = torch.arange(keys.size(1), device=keys.device) >= lengths.unsqueeze(1)
    return scores.masked_fill(padding, -torch.inf).detach()


def _load() -> Any:
    if os.environ.get("ONMT_ENTMAX_NATIVE") == "0":
        return None
    try:
        return import_module("onmt_entmax.nn._lstm")
    except ImportError:
        return None


module: Any = _load()


def _address(tensor: Tensor | None) -> int:
    return 0 if tensor is None else tensor.data_ptr()


def _with_columns(grad: Tensor) -> Tensor:
    """Return a gradient whose rows are contiguous, which an expanded one's are not."""
    return grad if grad.stride(1) == 1 else grad.contiguous()


def _numbers(sources: Sources) -> tuple[int, ...]:
    """Return the numbers of the C++ struct `Sources`."""
    tensors = sources.keys, sources.values, sources.lengths, sources.owners
    (bits,) = struct.unpack("q", struct.pack("d", sources.alpha))
    return sources.keys.size(1), *map(_address, tensors), bits


class NativeSteps(PlainSteps):
    """The steps in C++, one call each, for float32 matrices on a CPU.

    Matrices are contiguous, but for summands and gradients, whose strides are given.
    """

    @staticmethod
    def cell_forward(
        gates: Tensor, summand: Tensor, cell: Tensor, factors: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        output, hidden, after = (torch.empty_like(cell) for _ in range(3))
        module.cell_forward(
            torch.get_num_threads(),
            *cell.shape,
            gates.data_ptr(),
            summand.data_ptr(),
            summand.stride(0),
            cell.data_ptr(),
            _address(factors),
            output.data_ptr(),
            hidden.data_ptr(),
            after.data_ptr(),
        )
        return output, hidden, after

    @staticmethod
    def cell_backward(
        gates: Tensor,
        cell: Tensor,
        cell_after: Tensor,
        factors: Tensor | None,
        grads: tuple[Tensor, Tensor, Tensor],
        grad_gates: Tensor,
    ) -> Tensor:
        before = torch.empty_like(cell)
        output, hidden, inside = map(_with_columns, grads)
        module.cell_backward(
            torch.get_num_threads(),
            *cell.shape,
            gates.data_ptr(),
            cell.data_ptr(),
            cell_after.data_ptr(),
            _address(factors),
            output.data_ptr(),
            output.stride(0),
            hidden.data_ptr(),
            hidden.stride(0),
            inside.data_ptr(),
            inside.stride(0),
            grad_gates.data_ptr(),
            before.data_ptr(),
        )
        return before

    @staticmethod
    def attend(
        sources: Sources, query: Tensor, product: Tensor, factors: Tensor | None, weights: Tensor
    ) -> Tensor:
        output = torch.empty_like(query)
        tensors = query, product, factors, weights, output
        numbers = _numbers(sources)
        module.attend(torch.get_num_threads(), *query.shape, *numbers, *map(_address, tensors))
        return output

    @staticmethod
    def attend_backward(
        sources: Sources,
        query: Tensor,
        factors: Tensor | None,
        weights: Tensor,
        output: Tensor,
        grad_output: Tensor,
        grad: Tensor,
        grad_scores: Tensor,
    ) -> Tensor:
        made, grad_output = torch.empty_like(query), _with_columns(grad_output)
        tensors = factors, weights, output, grad, grad_scores, made, grad_output
        numbers = *_numbers(sources), *map(_address, tensors), grad_output.stride(0)
        module.attend_backward(torch.get_num_threads(), *query.shape, *numbers)
        return made


def steps_for(like: Tensor, alpha: float = 1.0) -> type[PlainSteps]:
    """Return the steps for cell states like these, and for an attention of this alpha."""
    if like.is_cuda or os.environ.get("TRITON_INTERPRET") == "1":
        try:
            from onmt_entmax.nn import lstm_triton
        except ImportError:
            return PlainSteps
        covers = like.dtype in (torch.float32, torch.float64) and lstm_triton.start(like.device)
        return lstm_triton.TritonSteps if covers else PlainSteps
    # Below 1.1, powers of 1 / (alpha - 1) leave float32's range.
    covers = alpha == 1 or 1.1 <= alpha <= 2
    in_memory = like.device.type == "cpu" and type(like) is Tensor
    is_matrix = like.dim() == 2 and like.dtype == torch.float32
    return NativeSteps if module and covers and in_memory and is_matrix else PlainSteps
