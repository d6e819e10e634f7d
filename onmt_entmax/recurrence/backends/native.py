"""The steps in C++ (`csrc/lstm.cpp`), for float32 states on a CPU."""

import struct
from typing import Any

import torch
from torch import Tensor

from onmt_entmax.recurrence.backends.contract import StepBackend
from onmt_entmax.recurrence.source_memory import Sources
from onmt_entmax.sparse.backends.cpu import load

native: Any = load("onmt_entmax.recurrence.backends._native")


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


class NativeBackend(StepBackend):
    """The steps in C++, one call each, for float32 states on a CPU.

    Matrices are contiguous, but for summands and gradients, whose strides are given.
    """

    @staticmethod
    def cell_forward(
        gates: Tensor, summand: Tensor, cell: Tensor, factors: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        output, hidden, after = (torch.empty_like(cell) for _ in range(3))
        half = gates.dtype == torch.bfloat16
        activations = cell.new_empty(gates.shape) if half else gates
        native.cell_forward(
            torch.get_num_threads(),
            *cell.shape,
            half,
            *map(_address, (gates, summand)),
            summand.stride(0),
            *map(_address, (cell, factors, activations, output, hidden, after)),
        )
        return activations, output, hidden, after

    @staticmethod
    def cell_backward(
        activations: Tensor,
        cell: Tensor,
        cell_after: Tensor,
        factors: Tensor | None,
        grads: tuple[Tensor, Tensor, Tensor],
        grad_gates: Tensor,
    ) -> Tensor:
        before = torch.empty_like(cell)
        arriving = [*map(_with_columns, grads)]  # held until C++ has read them
        native.cell_backward(
            torch.get_num_threads(),
            *cell.shape,
            grad_gates.dtype == torch.bfloat16,
            *map(_address, (activations, cell, cell_after, factors)),
            *(number for each in arriving for number in (each.data_ptr(), each.stride(0))),
            *map(_address, (grad_gates, before)),
        )
        return before

    @staticmethod
    def attend(
        sources: Sources, query: Tensor, product: Tensor, factors: Tensor | None, weights: Tensor
    ) -> Tensor:
        output = torch.empty_like(query)
        tensors = query, product, factors, weights, output
        numbers = product.dtype == torch.bfloat16, *_numbers(sources)
        native.attend(torch.get_num_threads(), *query.shape, *numbers, *map(_address, tensors))
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
        half = grad.dtype == torch.bfloat16
        native.attend_backward(torch.get_num_threads(), *query.shape, half, *numbers)
        return made
