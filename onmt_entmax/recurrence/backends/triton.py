"""The steps as Triton kernels, one each, for GPUs; triton_kernels.py has the kernels."""

from __future__ import annotations

import warnings
from functools import cache

import torch
import triton
from torch import Tensor

from onmt_entmax.recurrence.backends import triton_kernels
from onmt_entmax.recurrence.backends.contract import StepBackend
from onmt_entmax.recurrence.source_memory import RowSources
from onmt_entmax.sparse.backends.triton_alphas import alpha_of
from onmt_entmax.sparse.backends.triton_curves import NO_POWER
from onmt_entmax.sparse.backends.triton_launch import blocks, form_of

LONGEST = 512  # source positions in a program of attention
_CELLS = 512  # hidden units of a program
_TILE = 8192  # elements of source vectors in a tile of attention
_LEAST_HEIGHT = 16  # source positions of a tile
_CELL_WARPS, _ATTENTION_WARPS = 4, 8


class TritonBackend(StepBackend):
    """The steps as one kernel each, for float32 and float64 on a GPU.

    Attention is for alphas up to 2, and at most `LONGEST` source positions.
    """

    @staticmethod
    def cell_forward(
        gates: Tensor, summand: Tensor, cell: Tensor, factors: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        output, hidden, after = (cell.new_empty(cell.shape) for _ in range(3))
        gates = gates.to(cell.dtype)
        unread = gates  # a kernel takes a tensor in this place, which it does not touch
        grid, size = _grid(cell)
        triton_kernels.cell_forward_kernel[grid](
            gates, summand, cell, unread if factors is None else factors, output, hidden, after,
            _plane(summand), summand.stride(-2), _plane(cell), size,
            cell.size(-1), scaled=factors is not None, width=_CELLS, num_warps=_CELL_WARPS,
        )  # fmt: skip
        return gates, output, hidden, after

    @staticmethod
    def cell_backward(
        activations: Tensor,
        cell: Tensor,
        cell_after: Tensor,
        factors: Tensor | None,
        grads: tuple[Tensor, Tensor, Tensor],
        grad_gates: Tensor,
    ) -> Tensor:
        grad_before = cell.new_empty(cell.shape)
        grid, size = _grid(cell)
        grad_output, grad_hidden, grad_after = map(_with_contiguous_rows, grads)
        unread = activations
        triton_kernels.cell_backward_kernel[grid](
            activations, cell, cell_after, unread if factors is None else factors,
            grad_output, grad_hidden, grad_after, grad_gates, grad_before,
            _plane(cell), _plane(grad_output), grad_output.stride(-2),
            _plane(grad_hidden), grad_hidden.stride(-2), _plane(grad_after), _plane(grad_gates),
            size, cell.size(-1), scaled=factors is not None, width=_CELLS, num_warps=_CELL_WARPS,
        )  # fmt: skip
        return grad_before

    @staticmethod
    def attend(
        sources: RowSources,
        query: Tensor,
        projected: Tensor,
        factors: Tensor | None,
        weights: Tensor,
    ) -> Tensor:
        output = torch.empty_like(query)
        keys, values, lengths = sources.by_row(len(query))
        unread = query
        triton_kernels.attend_kernel[(len(query),)](
            query, keys, values, projected, unread if factors is None else factors, lengths,
            weights, output, alpha_of(sources.alpha, keys.shape).values, scaled=factors is not None,
            **form_of(sources.alpha, keys.dtype).constants, **_sizes(keys),
        )  # fmt: skip
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
        grad_output = _with_contiguous_rows(grad_output)
        keys, values, lengths = sources.by_row(len(query))
        grad_query = torch.empty_like(query)
        unread = output
        # Jacobian weights of softmax are no special case.
        power = max(form_of(sources.alpha, keys.dtype).power, NO_POWER.value)
        triton_kernels.attend_backward_kernel[(len(query),)](
            grad_output, output, unread if factors is None else factors, weights,
            keys, values, lengths, grad_projected, grad_scores, grad_query,
            alpha_of(sources.alpha, keys.shape).values, grad_output.stride(0),
            scaled=factors is not None, power=power, **_sizes(keys),
        )  # fmt: skip
        return grad_query


def _with_contiguous_rows(grad: Tensor) -> Tensor:
    """Return a gradient whose rows are contiguous, which an expanded one's are not."""
    return grad if grad.stride(-1) == 1 else grad.contiguous()


def _plane(tensor: Tensor) -> int:
    """Return the stride of directions in ``(directions, rows, size)``; 0 for ``(rows, size)``."""
    return tensor.stride(0) if tensor.dim() == 3 else 0


def _grid(cell: Tensor) -> tuple[tuple[int, int], int]:
    """Return the grid of a kernel of cells, and the cells of a direction."""
    size = cell.size(-2) * cell.size(-1)
    return (blocks(size, _CELLS), cell.numel() // size), size


def _sizes(keys: Tensor) -> dict[str, int]:
    """Return the sizes of keys ``(rows, source, hidden)`` and of a tile, for a kernel."""
    _, source, hidden = keys.shape
    height = max(triton.next_power_of_2(source), _LEAST_HEIGHT)
    width = min(_TILE // height, triton.next_power_of_2(hidden))
    return {
        "source": source,
        "hidden": hidden,
        "height": height,
        "width": width,
        "num_warps": _ATTENTION_WARPS,
    }


@cache
def start(device: torch.device) -> bool:
    """Return whether kernels start on a device; a failure is a warning."""
    cell = torch.zeros(1, 1, device=device)
    gates = torch.zeros(1, 4, device=device)
    try:
        TritonBackend.cell_forward(gates, gates, cell, None)
    except Exception as error:
        message = f"PyTorch runs the steps of LSTMs, slower: {error}"
        warnings.warn(message, RuntimeWarning, stacklevel=2)
        return False
    return True
