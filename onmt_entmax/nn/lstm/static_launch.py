"""Starts the kernels of the static recurrences; imported where there is Triton only."""

from __future__ import annotations

import torch
import triton
from torch import Tensor

from onmt_entmax.nn.lstm import static_kernels
from onmt_entmax.sparse.backends import triton as launch
from onmt_entmax.sparse.solvers import whole_power

_CELLS = 512  # states a program
_TILE = 8192  # source vectors' numbers that a program of attention holds at once
LONGEST = 512  # source positions of such a program, at most


def cell_forward(
    gates: Tensor,
    cell_before: Tensor,
    cell_after: Tensor,
    hidden_before: Tensor | None,
    hidden_after: Tensor,
    live: Tensor | None,
    second: Tensor | None,
    factors: Tensor | None,
) -> None:
    """See `static_cells.cell_forward`."""
    directions, rows, hidden = cell_before.shape
    size = rows * hidden
    none = gates
    grid = (triton.cdiv(size, _CELLS), directions)
    static_kernels.cell_forward[grid](
        gates, cell_before, cell_after,
        none if hidden_before is None else hidden_before, hidden_after,
        none if second is None else second,
        none if live is None else live,
        none if factors is None else factors,
        gates.stride(0), cell_before.stride(0), cell_after.stride(0),
        0 if hidden_before is None else hidden_before.stride(0),
        hidden_after.stride(0),
        0 if live is None else live.stride(0),
        hidden_after.stride(1), 0 if second is None else second.stride(1), size, hidden,
        masked=live is not None, has_second=second is not None, scaled=factors is not None,
        width=_CELLS, num_warps=4,
    )  # fmt: skip


def cell_backward(
    gates: Tensor,
    cell_before: Tensor,
    cell_after: Tensor,
    grad_state: Tensor,
    grad_above: Tensor,
    grad_cell: Tensor,
    live: Tensor | None,
    factors: Tensor | None,
) -> None:
    """See `static_cells.cell_backward`."""
    directions, rows, hidden = cell_before.shape
    size = rows * hidden
    grid = (triton.cdiv(size, _CELLS), directions)
    static_kernels.cell_backward[grid](
        gates, cell_before, cell_after, grad_state, grad_above, grad_cell,
        gates if live is None else live, gates if factors is None else factors,
        gates.stride(0), cell_before.stride(0), cell_after.stride(0), grad_above.stride(0),
        0 if live is None else live.stride(0), grad_state.stride(1), grad_above.stride(1),
        size, hidden,
        masked=live is not None, scaled=factors is not None, width=_CELLS, num_warps=4,
    )  # fmt: skip


class Attend:
    """The kernels of attention for one batch.

    Args:
        keys: ``(rows, source, hidden)``, contiguous.
        values: likewise.
        lengths: real source positions of each row, ``(rows,)`` int64.
        alpha: in [1, 2].
    """

    def __init__(self, keys: Tensor, values: Tensor, lengths: Tensor, alpha: float) -> None:
        self._keys, self._values, self._lengths = keys, values, lengths
        self._alpha = launch._alpha_of(alpha, keys.shape).given
        self._form = launch._form(alpha, keys.dtype)
        self._power = 0 if alpha == 1 else whole_power(1 / (alpha - 1))
        _, source, hidden = keys.shape
        height = max(triton.next_power_of_2(source), 16)
        width = min(_TILE // height, triton.next_power_of_2(hidden))
        self._sizes = {
            "source": source, "hidden": hidden, "height": height, "width": width, "num_warps": 8,
        }  # fmt: skip

    def forward(
        self,
        queries: Tensor,
        from_query: Tensor,
        factors: Tensor | None,
        weights: Tensor,
        outputs: Tensor,
        fed: Tensor,
    ) -> None:
        """One step, see `static_cells.DotAttention`; `fed` has rows of any stride."""
        static_kernels.attend[(len(queries),)](
            queries, self._keys, self._values, from_query,
            queries if factors is None else factors, self._lengths,
            weights, outputs, fed, self._alpha, fed.stride(0),
            scaled=factors is not None, **self._form.constants, **self._sizes,
        )  # fmt: skip

    def backward(
        self,
        grad_outputs: Tensor,
        grad_fed: Tensor,
        outputs: Tensor,
        factors: Tensor | None,
        weights: Tensor,
        grad_plain: Tensor,
        grad_scores: Tensor,
        grad_queries: Tensor,
    ) -> None:
        """The same step back."""
        static_kernels.attend_backward[(len(outputs),)](
            grad_outputs, grad_fed, outputs, outputs if factors is None else factors, weights,
            self._keys, self._values, self._lengths,
            grad_plain, grad_scores, grad_queries, self._alpha, grad_fed.stride(0),
            scaled=factors is not None, power=self._power, **self._sizes,
        )  # fmt: skip


def covers(keys: Tensor) -> bool:
    """Whether there are kernels of attention for such source vectors."""
    return keys.shape[1] <= LONGEST and keys.dtype in (torch.float32, torch.float64)
