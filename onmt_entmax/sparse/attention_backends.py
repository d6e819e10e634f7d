"""Attention by the fastest backend for its inputs, and its gradients.

`attention` has the interface; `composed_attention` computes what no backend covers.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from onmt_entmax.sparse import backends
from onmt_entmax.sparse.composed_attention import composed_attention, composed_attention_gradients
from onmt_entmax.sparse.inputs import Inputs
from onmt_entmax.sparse.recording import has_values

# The longest vectors for the GPU kernels: their blocks fit the shared memory of every GPU since
# Ampere.
_LONGEST_VECTOR = 128
# The kernels take heads with fewer weights than this, since dropout numbers them in 32 bits.
_WEIGHTS_OF_A_HEAD = 1 << 31


def attention_by_backend(inputs: Inputs, dtype: torch.dtype) -> Tensor:
    """Return attention by the backend for its inputs, or by PyTorch's operations.

    Args:
        inputs: the inputs, in the type of the result.
        dtype: the type in which the C++ code computes.
    """
    if torch.jit.is_tracing():
        return composed_attention(inputs)
    tensors = [field for field in inputs if isinstance(field, Tensor)]
    backend = backends.backend_for(inputs.query, inputs.alpha, *tensors)
    if backend is backends.reference or not all(tensor.numel() for tensor in tensors):
        return composed_attention(inputs)
    if backend is backends.cpu:
        output: Tensor = _Fused.apply(backend, *inputs.in_type(dtype))
        return output if inputs.value is None else output.to(inputs.query.dtype)
    if not _has_kernels(inputs):
        return composed_attention(inputs)
    output = _Fused.apply(backend, *inputs)
    return output


def _has_kernels(inputs: Inputs) -> bool:
    """Return whether the GPU kernels compute attention to these inputs and its gradients."""
    query, key, value, mask = inputs.query, inputs.key, inputs.value, inputs.mask
    if value is None or query.dtype == torch.float64 or (mask is not None and mask.requires_grad):
        return False
    has_short_vectors = max(query.shape[-1], value.shape[-1]) <= _LONGEST_VECTOR
    return has_short_vectors and query.shape[-2] * key.shape[-2] < _WEIGHTS_OF_A_HEAD


class _Fused(Function):
    """Attention by the ``forward`` and ``backward`` of a module of backends.

    ``apply`` takes the module and the fields of `Inputs`. :func:`composed_attention` gives the
    second derivatives.

    The module's ``forward(inputs, keep)`` returns the output, and tensors for ``backward``. Its
    ``backward`` takes the inputs, these tensors, the gradient in the output, and which gradients
    are wanted; it returns those in query, key, value, alpha and mask.
    """

    @staticmethod
    def forward(ctx: Any, module: Any, *arguments: Any) -> Tensor:
        ctx.module, inputs = module, Inputs(*arguments)
        output, kept = module.forward(inputs, any(ctx.needs_input_grad))
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
            of_tensors = ctx.module.backward(inputs, kept, gradients[0], wanted)
            return (None, *of_tensors, None, None, None)  # none of is_causal, scale, dropout_p
        factors = None
        if inputs.dropout_p > 0:
            if ctx.module is not backends.cpu:
                raise RuntimeError(
                    "attention with dropout has no second derivatives on a GPU; set dropout_p to 0"
                )
            factors = _dropout_factors(kept[0], inputs.dropout_p)
        return None, *composed_attention_gradients(inputs, factors, gradients[0], wanted)


def _dropout_factors(weights: Tensor, dropout_p: float) -> Tensor:
    """Return the factors of dropout from the weights that the C++ code kept, < 0 if dropped."""
    of_kept = 1 / (1 - dropout_p) if dropout_p < 1 else 0.0
    return (weights > 0) * of_kept
