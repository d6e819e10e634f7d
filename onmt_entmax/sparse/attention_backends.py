"""Attention by the fastest backend for its inputs, and its gradients.

The C++ code and the GPU kernels compute attention in one pass. PyTorch's operations compute what
these do not cover, and all second derivatives: see `composed_attention`.
"""

from types import ModuleType
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from onmt_entmax.sparse import backends
from onmt_entmax.sparse.composed_attention import composed_attention, composed_attention_gradients
from onmt_entmax.sparse.inputs import Inputs
from onmt_entmax.sparse.recording import has_values

# The largest size of queries, keys and values for the GPU kernels: a block of such vectors fits the
# shared memory of every GPU since Ampere.
_LONGEST_VECTOR = 128
# A head with this many weights (queries times keys) is too large for the GPU kernels: to draw its
# dropout, they number the weights in 32 bits with a sign.
_TOO_MANY_WEIGHTS = 1 << 31


def attention_by_backend(inputs: Inputs, dtype: torch.dtype) -> Tensor:
    """Return attention by the backend for its inputs, or by PyTorch's operations.

    Args:
        inputs: the inputs, in the type of the result; `attention_checks` has checked them.
        dtype: the type in which the C++ code computes: float32 for the half types, which it does
            not know.

    Returns:
        Attention ``(..., queries, value size)`` in the type of the query. Without values, weights
        ``(..., queries, keys)`` in ``dtype``: in a half type, they would no longer sum to 1.
    """
    backend = _fused_backend(inputs)
    if backend is None:
        return composed_attention(inputs)
    computed = inputs.in_type(dtype) if backend is backends.cpu else inputs
    output: Tensor = _FusedAttention.apply(backend, *computed)
    return output if inputs.value is None else output.to(inputs.query.dtype)


def _fused_backend(inputs: Inputs) -> ModuleType | None:
    """Return the backend that computes attention in one pass, or None if none does.

    None does in these cases:

    - a trace, which records PyTorch's operations,
    - tensors without elements,
    - inputs that `backend_for` leaves to the reference, for their alpha, type or device,
    - inputs that the GPU kernels do not cover.
    """
    if torch.jit.is_tracing():
        return None
    tensors = [field for field in inputs if isinstance(field, Tensor)]
    backend = backends.backend_for(inputs.query, inputs.alpha, *tensors)
    if backend is backends.reference or not all(tensor.numel() for tensor in tensors):
        return None
    return backend if backend is backends.cpu or _gpu_kernels_cover(inputs) else None


def _gpu_kernels_cover(inputs: Inputs) -> bool:
    """Return whether the GPU kernels compute attention to these inputs and its gradients.

    They do not return weights, do not multiply in float64, and do not compute the gradient of a
    mask.
    """
    query, key, value, mask = inputs.query, inputs.key, inputs.value, inputs.mask
    if value is None or query.dtype == torch.float64 or (mask is not None and mask.requires_grad):
        return False
    has_short_vectors = max(query.shape[-1], value.shape[-1]) <= _LONGEST_VECTOR
    return has_short_vectors and query.shape[-2] * key.shape[-2] < _TOO_MANY_WEIGHTS


class _FusedAttention(Function):
    """Attention by a backend, with the second derivatives of :func:`composed_attention`.

    ``apply`` takes the backend and the fields of `Inputs`. A backend is a module with three
    functions:

    - ``forward(inputs, keep)`` returns the output, and the tensors that the other two need. If
      ``keep`` is false, these will not be called.
    - ``backward(inputs, kept, gradient, wanted)`` returns the gradients with respect to query, key,
      value, alpha and mask. It takes the tensors of ``forward``, the upstream gradient with respect
      to the output, and for each field of the inputs whether its gradient is wanted.
    - ``dropout_factors(inputs, kept)`` returns what ``forward`` multiplied the weights by,
      ``(..., queries, keys)``. It is called for second derivatives if dropout_p is above 0. The GPU
      kernels raise an error instead.
    """

    @staticmethod
    def forward(ctx: Any, module: Any, *arguments: Any) -> Tensor:
        ctx.module, inputs = module, Inputs(*arguments)
        output, kept = module.forward(inputs, any(ctx.needs_input_grad))
        # Autograd saves tensors and None, so the other fields are kept apart, in the same places.
        tensors = (field if isinstance(field, Tensor) else None for field in inputs)
        ctx.save_for_backward(*tensors, *kept)
        ctx.others = [None if isinstance(field, Tensor) else field for field in inputs]
        return output

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        saved = ctx.saved_tensors  # once: under activation checkpointing, the second time fails
        count = len(ctx.others)
        pairs = zip(saved[:count], ctx.others, strict=True)
        inputs = Inputs(*(other if tensor is None else tensor for tensor, other in pairs))
        kept, wanted = saved[count:], ctx.needs_input_grad[1:]
        if not torch.is_grad_enabled() and has_values(gradients[0]):
            grads = ctx.module.backward(inputs, kept, gradients[0], wanted)
            return (None, *grads, None, None, None)  # none for is_causal, scale and dropout_p
        factors = ctx.module.dropout_factors(inputs, kept) if inputs.dropout_p > 0 else None
        return None, *composed_attention_gradients(inputs, factors, gradients[0], wanted)
