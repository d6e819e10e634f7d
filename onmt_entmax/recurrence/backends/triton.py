"""The steps on a GPU: each is one Triton kernel of triton_kernels.py."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import torch
import triton
from torch import Tensor

from onmt_entmax.recurrence.backends import triton_kernels
from onmt_entmax.recurrence.backends.contract import StepBackend
from onmt_entmax.recurrence.source_memory import RowSources
from onmt_entmax.sparse.backends.triton_alphas import beta_bits
from onmt_entmax.sparse.backends.triton_launch import blocks, form_of

# The most source positions for the kernels of attention: one program holds the scores of them all.
LONGEST_SOURCE = 512
# Numbers of hidden states that a program of the cells' kernels computes, and its warps.
_CELL_UNITS = 512
_CELL_WARPS = 4
# Elements of a tile of source vectors in the kernels of attention, the fewest source positions of a
# tile, and the warps of a program. A longer source has narrower tiles.
_TILE = 8192
_LEAST_HEIGHT = 16
_ATTENTION_WARPS = 8


class TritonBackend(StepBackend):
    """The steps as one kernel each, for states in float32 and float64 on a GPU.

    Attention is for alphas up to 2 and at most `LONGEST_SOURCE` source positions. `StepBackend` has
    arguments and results, triton_kernels.py the arguments of the kernels.
    """

    @staticmethod
    def cell_forward(
        gates: Tensor, summand: Tensor, cell: Tensor, factors: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        output, hidden_after, cell_after = (cell.new_empty(cell.shape) for _ in range(3))
        gates = gates.to(cell.dtype)
        triton_kernels.cell_forward_kernel[_cell_grid(cell)](
            gates=gates,
            summand=summand,
            cell=cell,
            output=output,
            hidden_after=hidden_after,
            cell_after=cell_after,
            **_strides("summand", summand),
            cell_direction_stride=_direction_stride(cell),
            **_dropout(factors, unread=gates),
            **_cell_sizes(cell),
        )
        return gates, output, hidden_after, cell_after

    @staticmethod
    def cell_backward(
        activations: Tensor,
        cell: Tensor,
        cell_after: Tensor,
        factors: Tensor | None,
        grads: tuple[Tensor, Tensor, Tensor],
        grad_gates: Tensor,
    ) -> Tensor:
        grad_cell = cell.new_empty(cell.shape)
        grad_output, grad_hidden_after, grad_cell_after = map(_with_contiguous_rows, grads)
        triton_kernels.cell_backward_kernel[_cell_grid(cell)](
            activations=activations,
            cell=cell,
            cell_after=cell_after,
            grad_output=grad_output,
            grad_hidden_after=grad_hidden_after,
            grad_cell_after=grad_cell_after,
            grad_gates=grad_gates,
            grad_cell=grad_cell,
            cell_direction_stride=_direction_stride(cell),
            **_strides("grad_output", grad_output),
            **_strides("grad_hidden_after", grad_hidden_after),
            **_strides("grad_cell_after", grad_cell_after),
            grad_gates_direction_stride=_direction_stride(grad_gates),
            **_dropout(factors, unread=activations),
            **_cell_sizes(cell),
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
        keys, values, lengths = sources.by_row(len(query))
        triton_kernels.attend_kernel[(len(query),)](
            queries=query,
            keys=keys,
            values=values,
            projected=projected,
            lengths=lengths,
            weights=weights,
            outputs=output,
            alpha=beta_bits(sources.alpha),
            **_dropout(factors, unread=query),
            **form_of(sources.alpha, keys.dtype).constants,
            **_attention_sizes(keys),
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
        grad_output = _with_contiguous_rows(grad_output)
        keys, values, lengths = sources.by_row(len(query))
        grad_query = torch.empty_like(query)
        triton_kernels.attend_backward_kernel[(len(query),)](
            grad_outputs=grad_output,
            outputs=output,
            weights=weights,
            keys=keys,
            values=values,
            lengths=lengths,
            grad_projected=grad_projected,
            grad_scores=grad_scores,
            grad_queries=grad_query,
            alpha=beta_bits(sources.alpha),
            grad_outputs_row_stride=grad_output.stride(0),
            power=form_of(sources.alpha, keys.dtype).jacobian_power,
            **_dropout(factors, unread=output),
            **_attention_sizes(keys),
        )
        return grad_query


def _with_contiguous_rows(grad: Tensor) -> Tensor:
    """Return a gradient with contiguous rows; an expanded gradient is copied."""
    return grad if grad.stride(-1) == 1 else grad.contiguous()


# ---- arguments of the kernels --------------------------------------------------------------------


def _strides(name: str, tensor: Tensor) -> dict[str, int]:
    """Return the strides of directions and rows of a tensor ``([directions,] rows, size)``."""
    return {
        f"{name}_direction_stride": _direction_stride(tensor),
        f"{name}_row_stride": tensor.stride(-2),
    }


def _direction_stride(tensor: Tensor) -> int:
    """Return the stride of directions in ``(directions, rows, size)``; 0 for ``(rows, size)``."""
    return tensor.stride(0) if tensor.dim() == 3 else 0


def _dropout(factors: Tensor | None, unread: Tensor) -> dict[str, Any]:
    """Return the factors of dropout, and whether there are any, as arguments of a kernel.

    Args:
        factors: ``(rows, hidden)``, or None.
        unread: any tensor, which the kernel takes in place of None and does not read.
    """
    return {"factors": unread if factors is None else factors, "scaled": factors is not None}


def _cell_grid(cell: Tensor) -> tuple[int, int]:
    """Return the grid of a kernel of cells: programs for each direction, and directions."""
    size = cell.size(-2) * cell.size(-1)
    return blocks(size, _CELL_UNITS), cell.numel() // size


def _cell_sizes(cell: Tensor) -> dict[str, int]:
    """Return the sizes of cell states ``(..., rows, hidden)`` and of a program."""
    rows, hidden = cell.shape[-2:]
    return {
        "size": rows * hidden,
        "hidden": hidden,
        "width": _CELL_UNITS,
        "num_warps": _CELL_WARPS,
    }


def _attention_sizes(keys: Tensor) -> dict[str, int]:
    """Return the sizes of keys ``(rows, source, hidden)`` and of a tile."""
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


# ---- trial ---------------------------------------------------------------------------------------


@cache
def can_start(device: torch.device) -> bool:
    """Return whether a kernel starts on a device, by trying one; a failure gives a warning."""
    cell = torch.zeros(1, 1, device=device)
    gates = torch.zeros(1, 4, device=device)
    try:
        TritonBackend.cell_forward(gates, gates, cell, None)
    except Exception as error:
        message = f"PyTorch runs the steps of LSTMs, slower: {error}"
        warnings.warn(message, RuntimeWarning, stacklevel=2)
        return False
    return True
