"""Matrix products on CPUs by oneDNN, with PyTorch's private operators.

PyTorch sends float32 products on a CPU to MKL, which reaches less than half the speed of some
processors (104 of 250 GF/s on an AMD Zen 5 core); oneDNN, which PyTorch contains too, reaches all
of it. Both sum in float32, in different orders.

oneDNN compiles a program for each shape. Compiling takes about as long as the product itself, and
oneDNN keeps the last 1024 programs, of 0.7 to 2.8 MB each. So the shapes should be few:
`products.py` and `prepared_weight.py` pad factors, whose number of rows changes from call to call,
with rows of zeros (`padded`).
"""

from functools import cache

import torch
from torch import Tensor
from torch.nn.functional import linear

ROWS = 64
"""In training, factors are padded to a multiple of this number of rows.

A weight is also reordered for this number of rows; it may then multiply any other number.
"""


def onednn_linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Return ``x @ weight.T (+ bias)`` by oneDNN, ``(rows, out)``.

    Args:
        x: ``(rows, in)``.
        weight: ``(out, in)`` in the type of `x`, perhaps in the layout of `reordered`.
        bias: ``(out,)``, or None.
    """
    return torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")


def reordered(weight: Tensor) -> Tensor:
    """Return a weight ``(out, in)`` in the layout that oneDNN multiplies fastest."""
    return torch.ops.mkldnn._reorder_linear_weight(_contiguous_or_transposed(weight), ROWS)


def _contiguous_or_transposed(matrix: Tensor) -> Tensor:
    """Return a matrix whose memory has no gaps, by row or by column; a copy if it must be.

    For slices of larger matrices, oneDNN takes seconds.
    """
    return matrix if matrix.t().is_contiguous() else matrix.contiguous()


@cache
def private_operators_work(dtype: torch.dtype) -> bool:
    """Return whether the private operators exist, and multiply this type on this processor.

    The test is a small product, computed once for each type.
    """
    if dtype not in (torch.float32, torch.bfloat16) or not torch.backends.mkldnn.is_available():
        return False
    x, weight = torch.arange(15.0).view(3, 5), torch.arange(20.0).view(4, 5)
    expected = (x @ weight.t()).to(dtype)
    x, weight = x.to(dtype), weight.to(dtype)
    try:
        with torch.no_grad(), torch.autocast("cpu", enabled=False):
            products = (
                onednn_linear(x, weight, None),
                onednn_linear(x, reordered(weight), None),
            )
    except (AttributeError, RuntimeError):
        return False
    return all(torch.allclose(product, expected) for product in products)


def uses_onednn(device: torch.device, dtype: torch.dtype) -> bool:
    """Return whether oneDNN computes products of this type on this device."""
    enabled = bool(torch.backends.mkldnn.enabled)  # PyTorch's own switch
    return device.type == "cpu" and enabled and private_operators_work(dtype)


def multiply_as_is(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return ``x @ weight.T (+ bias)`` by oneDNN if it is used, without padding.

    Args:
        x: ``(rows, in)``.
        weight: ``(out, in)`` in the type of `x`.
        bias: ``(out,)`` in the type of the result.

    Returns:
        ``(rows, out)`` in the type of `x`; in float32 on processors that do not multiply bfloat16.
    """
    if uses_onednn(x.device, x.dtype):
        return onednn_linear(_contiguous_or_transposed(x), _contiguous_or_transposed(weight), bias)
    if x.device.type == "cpu" and x.dtype == torch.bfloat16:  # not every processor multiplies it
        return linear(x.float(), weight.float(), bias)
    return linear(x, weight, bias)


def padded_empty(
    rows: int, *sizes: int, like: Tensor, dtype: torch.dtype, multiple: int = ROWS
) -> Tensor:
    """Return memory for rows, followed by rows of zeros that round their number up to a multiple.

    Args:
        rows: number of rows whose memory is not initialised.
        sizes: the other dimensions of the result: ``size`` for a matrix ``(padded rows, size)``;
            ``n, size`` for n matrices, ``(n, padded rows, size)``.
        like: a tensor on the device of the result.
        dtype: the type of the result.
        multiple: the number of padded rows is a multiple of this.
    """
    shape = (*sizes[:-1], -(-rows // multiple) * multiple, sizes[-1])
    memory = like.new_empty(shape, dtype=dtype)
    memory[..., rows:, :].zero_()
    return memory


def padded(x: Tensor, dtype: torch.dtype, multiple: int = ROWS) -> Tensor:
    """Return a factor of a product in a type; if oneDNN multiplies, with further rows of zeros.

    Args:
        x: the factor, ``(rows, in)``.
        dtype: the type of the result.
        multiple: for oneDNN, the number of rows of the result is a multiple of this.
    """
    if not uses_onednn(x.device, dtype) or x.size(0) % multiple == 0:
        return x.to(dtype)
    memory = padded_empty(len(x), x.size(1), like=x, dtype=dtype, multiple=multiple)
    memory[: len(x)] = x
    return memory
