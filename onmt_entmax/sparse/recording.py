"""Whether PyTorch computes operations now, or only records them in a trace, graph or file.

While it records, tensors may have no values, and sizes may differ from those of later runs.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor

_Result = TypeVar("_Result")

# Returns the number of active dispatch modes. It is private to PyTorch; in a version without it,
# only `torch.compile` is noticed.
_active_modes = getattr(torch._C, "_len_torch_dispatch_stack", None)


def has_values(tensor: Tensor) -> bool:
    """Return whether code outside PyTorch may read a tensor's memory: C++, kernels, Python numbers.

    It may not read

    - any tensor while PyTorch records: `torch.jit.trace`, `torch.compile`, `make_fx`, fake tensors,
    - the tensors of `torch.vmap` and other subclasses,
    - lazily negated tensors, whose memory has the opposite sign,
    - zeros without storage, such as gradients that PyTorch knows to be 0.

    Reading values on a GPU means waiting for it; see :func:`is_readable_now`.

    Raises:
        RuntimeError: inside a transform of `torch.func`, some of which would get zeros as
            derivatives.
    """
    if torch.jit.is_tracing():
        return False
    if torch.compiler.is_compiling() or (_active_modes is not None and _active_modes() > 0):
        return False
    if type(tensor) not in (Tensor, torch.nn.Parameter) or tensor.is_neg():
        return False
    try:
        return tensor.data_ptr() != 0 or tensor.numel() == 0
    except RuntimeError:
        if torch._C._functorch.is_functorch_wrapped_tensor(tensor):
            raise RuntimeError("entmax does not support the transforms of torch.func") from None
        return False


def is_readable_now(tensor: Tensor) -> bool:
    """Return whether a tensor's values can be read without waiting for a GPU.

    Raises:
        RuntimeError: see :func:`has_values`.
    """
    return has_values(tensor) and tensor.device.type == "cpu"


def is_in_onnx_export() -> bool:
    """Return whether PyTorch writes an ONNX file now, without loading the part that writes it.

    While dynamo compiles, it returns False: dynamo cannot compile the look-up in `sys.modules`.
    """
    if torch.compiler.is_dynamo_compiling():
        return False
    onnx = sys.modules.get("torch.onnx")
    return onnx is not None and bool(onnx.is_in_onnx_export())


def is_empty(tensor: Tensor) -> bool:
    """Return whether a tensor has no elements; False in `torch.jit.trace`, where sizes vary."""
    return not torch.jit.is_tracing() and not tensor.numel()


def size_of(tensor: Tensor, dim: int) -> int | Tensor:
    """Return a size for arithmetic; while `torch.jit.trace` records, a float64 tensor.

    A trace then computes with the sizes of the tensors that it is run with, not of its example.
    """
    size: Any = tensor.shape[dim]
    return size.double() if isinstance(size, Tensor) else size


def check_shapes(check: Callable[..., _Result], *arguments: object) -> _Result:
    """Return ``check(*arguments)``, a check of shapes, without warnings of `torch.jit.trace`.

    While PyTorch records a trace, the check compares the shapes of the example only, of which
    PyTorch would warn. If the trace is later run with shapes that do not fit each other, its
    operations fail.
    """
    if not torch.jit.is_tracing():
        return check(*arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", torch.jit.TracerWarning)
        return check(*arguments)
