"""The choice between PyTorch and C++ for the steps of a recurrence, and the C++ side of it.

`make_cells` and `make_readout` are the only places that choose: `Cells` and `Readout` in PyTorch
operations, or `NativeCells` and `NativeReadout` with the same results to rounding. In C++ a step
of a layer or of the attention is one product, by oneDNN, and one call for everything else; in
PyTorch it is some twenty operators, which take longer to start than to compute.

The C++ module is built when the package is installed with a compiler, and is used for float32 on a
CPU, with `dot` or `general` attention and alpha 1 or from 1.1 up. ``ONMT_ENTMAX_NATIVE=0`` in the
environment switches it off.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import torch
from torch import Tensor

from onmt_entmax.nn.lstm.attention import Readout, RecurrentAttention
from onmt_entmax.nn.lstm.cells import Above, Cells, Steps
from onmt_entmax.nn.products import PreparedWeight
from onmt_entmax.sparse.arguments import has_memory, is_traced
from onmt_entmax.sparse.backends.cpu import load
from onmt_entmax.sparse.solvers import SMALLEST_POWER_ALPHA, whole_power

module = load("onmt_entmax.nn.lstm._native")

# The letters by which C++ knows the types of the products.
_KINDS = {torch.float32: "f", torch.bfloat16: "b"}


def make_cells(
    steps: Steps,
    order: Sequence[int],
    multiply: PreparedWeight,
    entering: Tensor | None,
    outputs: Tensor,
    last: tuple[Tensor, Tensor],
    above: Above | None = None,
) -> Cells:
    """Return `NativeCells` where C++ covers the arguments, else `Cells`; see there."""
    floats = (entering, multiply.bias, *last, None if above is None else above.factors)
    alike = all(tensor is None or tensor.dtype == outputs.dtype for tensor in floats)
    kind = NativeCells if alike and _covers(outputs, multiply) else Cells
    return kind(steps, order, multiply, entering, outputs, last, above)


def make_readout(
    steps: Steps,
    attention: RecurrentAttention,
    factors: Tensor | None,
    fed: Tensor,
    lengths: Tensor | None,
) -> Readout:
    """Return a `NativeReadout` where C++ covers the arguments, else a `Readout`; see there.

    Of each row, the first ``lengths`` ``(batch,)`` int64 source positions are real; None: all.
    """
    if (
        not attention.additive
        and attention.from_query.bias is None
        and (attention.alpha == 1 or attention.alpha >= SMALLEST_POWER_ALPHA)
        and _covers(attention.values, attention.from_query)
        and attention.values.size(1) > 0
        and (lengths is None or bool((lengths > 0).all()))  # entmax refuses empty rows
    ):
        return NativeReadout(steps, attention, factors, fed, lengths)
    return Readout(steps, attention, factors, fed)


def _covers(tensor: Tensor, multiply: PreparedWeight) -> bool:
    """Return whether C++ can work with such states and products."""
    return (
        module is not None
        and tensor.device.type == "cpu"
        and tensor.dtype == torch.float32
        and multiply.dtype in _KINDS
        and has_memory(tensor)
        and not is_traced()
    )


def _rows(tensor: Tensor | None) -> tuple[int, int]:
    """Return the address of a matrix and the stride of its rows; zeros for None."""
    if tensor is None:
        return 0, 0
    assert tensor.stride(1) == 1
    return tensor.data_ptr(), tensor.stride(0)


def _packed(*numbers: int) -> bytes:
    """Pack a plan for C++: 64-bit numbers in the order of the struct in `csrc/native.cpp`."""
    return struct.pack(f"{len(numbers)}q", *numbers)


class NativeCells(Cells):
    """`Cells` of float32 states on a CPU, with one C++ call a step."""

    def __init__(
        self,
        steps: Steps,
        order: Sequence[int],
        multiply: PreparedWeight,
        entering: Tensor | None,
        outputs: Tensor,
        last: tuple[Tensor, Tensor],
        above: Above | None,
    ) -> None:
        super().__init__(steps, order, multiply, entering, outputs, last, above)
        assert module is not None
        self._native, self._kind = module, _KINDS[multiply.dtype]
        self._threads = torch.get_num_threads()
        total, hidden = steps.total, self._hidden
        share = _rows(entering)
        if entering is None:  # a stride of 0: the bias for every row
            assert multiply.bias is not None
            share = multiply.bias.data_ptr(), 0
        # Cell states before each step, and what the backward pass needs.
        self._cells = outputs.new_zeros(total, hidden)
        self._gates = outputs.new_empty(total, 4 * hidden)
        self._squashed = torch.empty_like(self._cells)
        into = (None, None) if above is None else (above.inputs, above.factors)
        written = outputs, *last, *into, self._states, self._cells, self._gates, self._squashed
        addresses = (number for tensor in written for number in _rows(tensor))
        self._plan = _packed(hidden, *share, *addresses)

    def begin(self, hidden: Tensor, cell: Tensor) -> None:
        """See `Cells`."""
        super().begin(hidden, cell)
        if self._order:
            rows = self._steps.rows(self._order[0])
            self._cells[rows] = cell[: rows.stop - rows.start]

    def forward(self, at: int) -> None:
        """See `Cells`."""
        _, rows, size = self._at(at)
        product = self._multiply.plain(self.inputs[rows])
        following, going_on = self._next(at)
        self._native.cell_forward(
            self._kind,
            self._threads,
            self._plan,
            rows.start,
            size,
            following,
            going_on,
            product.data_ptr(),
        )

    def start_backward(self, multiply: PreparedWeight, hidden: Tensor, cell: Tensor) -> None:
        """See `Cells`."""
        super().start_backward(multiply, hidden, cell)
        cast = self._cast_grad_gates if multiply.dtype != hidden.dtype else None
        self._grad_bias = hidden.new_zeros(4 * self._hidden)
        self._later: Tensor | None = None
        written = (hidden, cell, self._grad_gates, cast)
        addresses = (number for tensor in written for number in _rows(tensor))
        self._back_plan = _packed(*addresses, self._grad_bias.data_ptr())

    def backward(self, at: int, grad: Tensor | None, above: Tensor | None) -> Tensor:
        """See `Cells`; the gradient is in the type of the products."""
        _, rows, size = self._at(at)
        later = None if self._later is None else self._later[:, -self._hidden :]
        self._native.cell_backward(
            self._kind,
            self._threads,
            self._plan,
            self._back_plan,
            rows.start,
            size,
            0 if later is None else min(size, later.size(0)),
            *_rows(later),
            *_rows(grad),
            *_rows(above),
        )
        self._later = self._back.plain(self._cast_grad_gates[rows])
        return self._later

    def finish_backward(self) -> tuple[Tensor, Tensor]:
        """See `Cells`."""
        if self._later is not None:
            self._grad_hidden[: self._later.size(0)] = self._later[:, -self._hidden :]
        return super().finish_backward()

    def _bias_gradient(self) -> Tensor:
        return self._grad_bias


class NativeReadout(Readout):
    """`Readout` of `dot` and `general` attention in float32 on a CPU, with one C++ call a step.

    Arguments are those of `make_readout`.
    """

    def __init__(
        self,
        steps: Steps,
        attention: RecurrentAttention,
        factors: Tensor | None,
        fed: Tensor,
        lengths: Tensor | None,
    ) -> None:
        super().__init__(steps, attention, factors, fed)
        assert module is not None
        self._native, self._kind = module, _KINDS[attention.from_query.dtype]
        self._threads = torch.get_num_threads()
        self._lengths = lengths  # the plan has its address
        alpha = attention.alpha
        batch, length, hidden = attention.keys.shape
        assert attention.keys.is_contiguous()
        assert attention.values.is_contiguous()
        memory = (attention.keys, attention.values, lengths, attention.weights)
        written = (attention.queries, self.attentional, self.outputs, factors, fed)
        self._plan = struct.pack(
            "17qdq",
            *(hidden, batch, length),
            *(0 if tensor is None else tensor.data_ptr() for tensor in memory),
            *(number for tensor in written for number in _rows(tensor)),
            alpha,
            (whole_power(1 / (alpha - 1)) if alpha > 1 else None) or -1,
        )

    def forward(self, step: int) -> None:
        """See `Readout`."""
        steps, sizes = self._steps, self._steps.sizes
        rows = steps.rows(step)
        product = self._attention.from_query.plain(self._attention.cast_queries[rows])
        last = step + 1 == len(sizes)
        self._native.attend(
            self._kind,
            self._threads,
            self._plan,
            step,
            rows.start,
            sizes[step],
            0 if last else steps.starts[step + 1],
            0 if last else sizes[step + 1],
            product.data_ptr(),
        )

    def start_backward(
        self, attentional: Tensor, attention: Tensor, grad: Tensor, grad_attention: Tensor | None
    ) -> None:
        """See `Readout`."""
        self._grad = grad
        self._attention.start_backward(attention)
        cast = None
        if self._attention.to_query.dtype != grad.dtype:
            cast = torch.empty_like(grad, dtype=self._attention.to_query.dtype)
        self._cast_grad = grad if cast is None else cast
        self._query = grad.new_empty(self._steps.batch, grad.size(1))
        written = (attention, grad_attention, self._attention.grad_scores, attentional, grad, cast)
        addresses = (0 if tensor is None else tensor.data_ptr() for tensor in written)
        self._back_plan = _packed(*addresses, self._query.data_ptr())
        self._held = attentional, grad_attention  # nothing else does while the plan is used

    def backward(self, step: int, fed: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """See `Readout`; the second gradient is in the type of the products."""
        rows, size = self._steps.rows(step), self._steps.sizes[step]
        self._native.attend_backward(
            self._kind,
            self._threads,
            self._plan,
            self._back_plan,
            step,
            rows.start,
            size,
            0 if fed is None else fed.size(0),
            *_rows(fed),
        )
        return self._query[:size], self._attention.to_query.plain(self._cast_grad[rows])

    def finish_backward(self) -> tuple[Tensor, dict[str, Tensor]]:
        """See `Readout`."""
        del self._held
        return super().finish_backward()
