"""Checks of scores and alphas, of tensors whose values cannot be read; arguments of attention."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

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
    fits = (alpha >= 1) & alpha.isfinite()
    if not is_readable(alpha):
        return torch.where(fits, alpha, torch.nan).expand(shape)
    if not bool(fits.all()):
        wrong = float(alpha.detach()[~fits][0])
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


class Inputs(NamedTuple):
    """The arguments of attention.

    Attributes:
        query: ``(..., queries, size)``; leading dimensions broadcast, the last are the heads.
        key: ``(..., keys, size)``.
        value: ``(..., keys, value size)``; None: the weights are the output.
        alpha: a number, or ``(heads, 1, 1)``.
        mask: broadcasts to the weights; booleans, or numbers.
        is_causal: whether query i attends to keys 0 to i only.
        scale: of the scores.
        dropout_p: the probability with which a weight is dropped.
    """

    query: Tensor
    key: Tensor
    value: Tensor | None
    alpha: float | Tensor
    mask: Tensor | None
    is_causal: bool
    scale: float
    dropout_p: float

    def in_type(self, dtype: torch.dtype) -> Inputs:
        """Return the inputs with all numbers but alpha in a type."""
        value, mask = self.value, self.mask
        # Not `_replace` or `*self[5:]`, which torch 2.6 does not compile.
        return Inputs(
            self.query.to(dtype),
            self.key.to(dtype),
            None if value is None else value.to(dtype),
            self.alpha,
            mask if mask is None or mask.dtype == torch.bool else mask.to(dtype),
            self.is_causal,
            self.scale,
            self.dropout_p,
        )


def leading_shape(*tensors: Tensor | None) -> torch.Size:
    """Return the common leading dimensions of tensors ``(..., rows, columns)``.

    Raises:
        RuntimeError: if they do not broadcast.
    """
    shapes = [tensor.shape[:-2] for tensor in tensors if tensor is not None]
    # The general function takes as long as attention to a few keys.
    same = all(shape == shapes[0] for shape in shapes)
    return shapes[0] if same else torch.broadcast_shapes(*shapes)


class Leading:
    """The leading dimensions of inputs as exactly two: ``outer`` ones and ``heads``.

    Attributes:
        outer: all but the last, multiplied.
        heads: the last leading dimension.
        count: number of heads in all.
        queries: of a head.
        keys: of a head.
    """

    def __init__(self, inputs: Inputs) -> None:
        self._shape = leading_shape(inputs.query, inputs.key, inputs.value)
        self.heads = self._shape[-1] if self._shape else 1
        self.count = math.prod(self._shape)
        self.outer = self.count // self.heads
        self.queries, self.keys = inputs.query.shape[-2], inputs.key.shape[-2]

    def of(self, tensor: Tensor) -> Tensor:
        """Return a tensor ``(outer, heads, rows, columns)``, as a rule without a copy."""
        last = tensor.shape[-2:]
        return tensor.expand(*self._shape, *last).reshape(self.outer, self.heads, *last)

    def of_mask(self, mask: Tensor) -> Tensor:
        """Return a mask ``(outer, heads, queries, keys)``, as a rule without a copy."""
        return self.of(mask.expand(*self._shape, self.queries, self.keys))

    def shaped(self, tensor: Tensor) -> Tensor:
        """Return a tensor of two leading dimensions with those of the inputs."""
        return tensor.view(*self._shape, *tensor.shape[-2:])

    def in_alpha(self, gradients: Tensor, alpha: Tensor) -> Tensor:
        """Return the gradient in alpha, of those of all queries ``(count, queries)``."""
        by_head = gradients.view(-1, self.heads, self.queries).sum((0, 2))
        return by_head.view(alpha.shape).to(alpha.dtype)
