"""Checks of scores and alphas, and of tensors whose values cannot be read."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

# The number of active dispatch modes. It is private; without it only `torch.compile` is noticed.
_active_modes = getattr(torch._C, "_len_torch_dispatch_stack", None)


def working_type(scores: Tensor) -> torch.dtype:
    """Return the type to compute in: float32 for the half types, else the scores' own.

    Raises:
        ValueError: if the scores are not floating point.
    """
    dtype = scores.dtype
    if dtype in (torch.float32, torch.float64):
        return dtype
    if not dtype.is_floating_point:
        raise ValueError(f"scores must be floating point, got {dtype}; convert them first")
    return torch.float32


def checked_alpha(alpha: float | Tensor, scores: Tensor, dim: int) -> float | Tensor:
    """Return alpha as a number, or as a tensor in the shape of ``scores`` with 1 in ``dim``.

    Raises:
        ValueError: if an alpha is below 1 or nan, or the tensor does not broadcast. Where a tensor
            cannot be read without waiting, an alpha below 1 becomes nan instead.
    """
    if not isinstance(alpha, Tensor):
        return float(valid_alpha(alpha))
    if not alpha.requires_grad and is_readable(alpha) and alpha.numel() == 1:
        return checked_alpha(float(alpha), scores, dim)
    shape = list(scores.shape)
    shape[dim] = 1
    if alpha.dim() == 0:
        alpha = alpha.to(scores.device)
    try:
        rows = alpha.expand(shape)
    except RuntimeError:
        raise ValueError(
            f"alpha of shape {tuple(alpha.shape)} does not broadcast to the rows of the scores, "
            f"{tuple(shape)}; give it size 1 in the normalised dimension"
        ) from None
    if alpha.device != scores.device:
        raise ValueError(f"alpha is on {alpha.device}, the scores are on {scores.device}")
    valid = (alpha >= 1) & alpha.isfinite()
    if not is_readable(alpha):
        return torch.where(valid, alpha, torch.nan).expand(shape)
    if not bool(valid.all()):
        wrong = float(alpha.detach()[~valid][0])
        raise ValueError(f"every alpha must be a number from 1 (softmax) up, got {wrong}")
    return rows


def valid_alpha(alpha: float | Tensor) -> float | Tensor:
    """Return an alpha that a module may keep; tensors may change and are checked when used.

    Raises:
        ValueError: if a number is below 1, infinite or nan.
    """
    if not isinstance(alpha, Tensor) and not 1 <= alpha < float("inf"):
        raise ValueError(f"alpha must be a number from 1 (softmax) up, got {alpha}")
    return alpha


def alpha_text(alpha: float | Tensor) -> str:
    """Return an alpha for printing: a number, or the shape of a tensor."""
    return f"tensor{tuple(alpha.shape)}" if isinstance(alpha, Tensor) else f"{alpha:g}"


def is_readable(tensor: Tensor, wait: bool = False) -> bool:
    """Return whether a tensor's values lie at its address now, or with `wait` once a GPU has them.

    False while PyTorch records operations (`torch.compile`, `make_fx`, `torch.jit.trace`, fake
    tensors), when only operators that it knows may read tensors; and for the wrappers of
    `torch.vmap`, subclasses such as fake tensors, lazily negated tensors and zeros without storage.
    """
    if torch.jit.is_tracing():
        return False
    if torch.compiler.is_compiling() or (_active_modes is not None and _active_modes() > 0):
        return False
    if type(tensor) not in (Tensor, torch.nn.Parameter) or tensor.is_neg():
        return False
    try:
        has_memory = tensor.data_ptr() != 0 or tensor.numel() == 0
    except RuntimeError:
        if torch._C._functorch.is_functorch_wrapped_tensor(tensor):
            # Some of its transforms would get zeros for derivatives.
            raise RuntimeError("entmax does not support the transforms of torch.func") from None
        return False
    return has_memory and (wait or tensor.device.type == "cpu")


def is_in_onnx_export() -> bool:
    """Return whether PyTorch writes an ONNX file now; the question loads no part of PyTorch."""
    if torch.compiler.is_dynamo_compiling():
        return False
    onnx = sys.modules.get("torch.onnx")
    return onnx is not None and bool(onnx.is_in_onnx_export())


def is_empty(tensor: Tensor) -> bool:
    """Return whether a tensor has no elements; False in `torch.jit.trace`, where sizes vary."""
    return not torch.jit.is_tracing() and not tensor.numel()


def size_of(tensor: Tensor, dim: int) -> int | Tensor:
    """Return a size for arithmetic; while `torch.jit.trace` records, a float64 tensor.

    So a trace computes with the sizes of the tensors that it is run with.
    """
    size: Any = tensor.shape[dim]
    return size.double() if isinstance(size, Tensor) else size


def checked(check: Callable[..., Any], *arguments: Any) -> Any:
    """Return the result of a check of shapes.

    While `torch.jit.trace` records, it compares those of the example, of which PyTorch need not
    warn: a trace that is run with shapes that do not fit each other fails in its operations.
    """
    if not torch.jit.is_tracing():
        return check(*arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", torch.jit.TracerWarning)
        return check(*arguments)


def refuse_rows_without_answer(maxima: Tensor) -> None:
    """Refuse rows whose largest score is -inf, where that can be read.

    Raises:
        ValueError: if there is one.
    """
    if is_readable(maxima) and bool(torch.isneginf(maxima).any()):
        raise ValueError(
            "a row of scores is -inf everywhere and has no probabilities; leave at least one finite"
        )


def rounded(probability: Tensor, support: Tensor, dtype: torch.dtype) -> Tensor:
    """Return probabilities in a type, of which none on the support is below its smallest number."""
    info = torch.finfo(dtype)
    result = probability.to(dtype)
    # Added, not written: the probability keeps its gradient.
    return result + ((result == 0) & support).to(dtype) * (info.smallest_normal * info.eps)
