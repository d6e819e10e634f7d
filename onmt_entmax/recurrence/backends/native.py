"""The steps in C++ (`csrc/lstm.cpp`), for float32 states on a CPU.

The extension exists if the package was installed with a C++ compiler. Each of its functions takes
the fields of a struct of `csrc/lstm.cpp`, **in their order**: the number of threads, then sizes,
strides and addresses of memory (0 for None), all as 64-bit integers. C++ checks only how many there
are. The tensors must live until the function returns.
"""

import struct
from typing import Any

import torch
from torch import Tensor

from onmt_entmax.recurrence.backends.contract import StepBackend
from onmt_entmax.recurrence.source_memory import RowSources
from onmt_entmax.sparse.backends.extension_modules import load_extension

native: Any = load_extension("onmt_entmax.recurrence.backends._native")
"""The C++ module, or None if there is none. csrc/lstm.cpp lists its functions."""


class NativeBackend(StepBackend):
    """The steps in C++, one call each; see `StepBackend` for arguments and results.

    Matrices are contiguous, except summands and gradients, whose row strides are passed too.
    """

    @staticmethod
    def cell_forward(
        gates: Tensor, summand: Tensor, cell: Tensor, factors: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        output, hidden, cell_after = map(torch.empty_like, (cell, cell, cell))
        is_bfloat16 = gates.dtype == torch.bfloat16
        activations = cell.new_empty(gates.shape) if is_bfloat16 else gates
        native.cell_forward(
            torch.get_num_threads(),
            *cell.shape,
            is_bfloat16,
            *map(_address, (gates, summand)),
            summand.stride(0),
            *map(_address, (cell, factors, activations, output, hidden, cell_after)),
        )
        return activations, output, hidden, cell_after

    @staticmethod
    def cell_backward(
        activations: Tensor,
        cell: Tensor,
        cell_after: Tensor,
        factors: Tensor | None,
        grads: tuple[Tensor, Tensor, Tensor],
        grad_gates: Tensor,
    ) -> Tensor:
        grad_cell = torch.empty_like(cell)
        arriving = [*map(_with_contiguous_rows, grads)]  # a list, so that copies live until the end
        native.cell_backward(
            torch.get_num_threads(),
            *cell.shape,
            grad_gates.dtype == torch.bfloat16,
            *map(_address, (activations, cell, cell_after, factors)),
            *(number for grad in arriving for number in (grad.data_ptr(), grad.stride(0))),
            *map(_address, (grad_gates, grad_cell)),
        )
        return grad_cell

    @staticmethod
    def attend(
        sources: RowSources,
        query: Tensor,
        projected: Tensor,
        factors: Tensor | None,
        weights: Tensor,
    ) -> Tensor:
        output = torch.empty_like(query)
        native.attend(
            torch.get_num_threads(),
            *query.shape,
            projected.dtype == torch.bfloat16,
            *_sources_struct(sources),
            *map(_address, (query, projected, factors, weights, output)),
        )
        return output

    @staticmethod
    def attend_backward(
        sources: RowSources,
        query: Tensor,
        factors: Tensor | None,
        weights: Tensor,
        output: Tensor,
        grad_output: Tensor,
        grad_projected: Tensor,
        grad_scores: Tensor,
    ) -> Tensor:
        grad_query, grad_output = torch.empty_like(query), _with_contiguous_rows(grad_output)
        tensors = factors, weights, output, grad_projected, grad_scores, grad_query, grad_output
        native.attend_backward(
            torch.get_num_threads(),
            *query.shape,
            grad_projected.dtype == torch.bfloat16,
            *_sources_struct(sources),
            *map(_address, tensors),
            grad_output.stride(0),
        )
        return grad_query


def _address(tensor: Tensor | None) -> int:
    """Return the address of a tensor's memory, 0 for None."""
    return 0 if tensor is None else tensor.data_ptr()


def _with_contiguous_rows(grad: Tensor) -> Tensor:
    """Return a gradient with contiguous rows; an expanded gradient is copied."""
    return grad if grad.stride(1) == 1 else grad.contiguous()


def _sources_struct(sources: RowSources) -> tuple[int, ...]:
    """Return the fields of the C++ struct `Sources`; alpha by its bits, since all are integers."""
    memory = sources.memory
    tensors = memory.keys, memory.values, memory.lengths, sources.owners
    (alpha_bits,) = struct.unpack("q", struct.pack("d", sources.alpha))
    return memory.keys.size(1), *map(_address, tensors), alpha_bits
