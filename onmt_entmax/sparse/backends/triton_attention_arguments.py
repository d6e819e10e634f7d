"""The arguments that all Triton kernels of attention take.

`Operands` are queries, keys and values in the layout of the kernels; `shared_arguments` returns
them with all others by name:

=================================  =================================================================
``query, key, value``              ``(outer, heads, rows, size)``, the last stride 1
``mask, alpha, seed``              tensors, some of which may be unread; see `shared_arguments`
``query_outer_stride, ...``        strides in elements: of ``query``, ``key``, ``value`` and
                                   ``mask``, each for ``outer``, ``head`` and ``row``
``mask_column_stride``             0 or 1: a mask may be broadcast over the keys
``heads, total_heads``             heads of an outer index; of all outer indices together
``query_count, key_count``         queries and keys of a head
``size, value_size``               columns of queries and keys; of values
``scale, dropout_p``               factor of the scores; probability with which a weight is dropped
``each_head``                      whether each head has its own alpha
``log_form, power``                form of the curve, see triton_curves.py
``masking``                        "none", "causal", "booleans" or "numbers"
``has_dropout``                    whether weights are dropped
``precision``                      of products, see ``tl.dot``
``padded_size``                    columns of a tile: ``size`` as a power of 2, at least 16
``padded_value_size``              the same of ``value_size``
=================================  =================================================================

triton_attention.py adds the rest, some of them for one kernel alone:

=================================  =================================================================
``block_queries, block_keys``      queries and keys of a block
``one_block``                      whether one block holds all keys
``out``                            the output, ``(outer, heads, queries, value size)``
``statistics``                     ``(3, total heads, queries)``: of each query the largest score,
                                   the threshold, and the sum of the weights, nearly 1
``upstream``                       gradient with respect to the output, like ``out``; contiguous
``means``                          ``(total heads, queries)``, see triton_attention_gradients.py
``query_grad``                     receives the gradient with respect to queries, like ``query``
``key_grad, value_grad``           receive those with respect to keys and values, like these
``alpha_grad``                     receives the part of each query in the gradient with respect to
                                   alpha, ``(total heads, queries)``
``wants_alpha``                    whether to write ``alpha_grad``
=================================  =================================================================

Triton 3.2, the oldest that this package takes, has no tuples as arguments, so kernels pass all of
them on one by one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from onmt_entmax.sparse.backends.triton_alphas import beta_bits, kernel_alphas
from onmt_entmax.sparse.backends.triton_attention_blocks import tile_side
from onmt_entmax.sparse.backends.triton_launch import form_of
from onmt_entmax.sparse.head_layout import HeadLayout
from onmt_entmax.sparse.inputs import Inputs


class Operands(NamedTuple):
    """Query, key and value as the kernels take them, with a stride of 1 in the last dimension.

    Attributes:
        query: ``(outer, heads, queries, size)``.
        key: ``(outer, heads, keys, size)``.
        value: ``(outer, heads, keys, value size)``.
    """

    query: Tensor
    key: Tensor
    value: Tensor

    @classmethod
    def of(cls, inputs: Inputs, layout: HeadLayout) -> Operands:
        """Return the operands of attention; `HeadLayout` says when they are copies."""
        assert inputs.value is not None, "weights as the output are left to PyTorch"
        tensors = (inputs.query, inputs.key, inputs.value)
        return cls(*(_with_last_stride_1(layout.split(tensor)) for tensor in tensors))

    @property
    def precision(self) -> str:
        """Precision of products, as ``tl.dot`` takes it.

        Three products in TF32 are as exact as one in float32, which no tensor core has.
        """
        is_exact = self.query.dtype == torch.float32 and not _may_round_to_tf32()
        return "tf32x3" if is_exact else "tf32"


def _with_last_stride_1(tensor: Tensor) -> Tensor:
    """Return a tensor, or a contiguous copy if its last dimension has another stride."""
    return tensor if tensor.stride(-1) == 1 else tensor.contiguous()


def _may_round_to_tf32() -> bool:
    """Return whether PyTorch is allowed to round factors in float32 to TF32."""
    matmul = torch.backends.cuda.matmul
    # Since 2.9; where this is set, PyTorch refuses to read the older setting.
    precision = getattr(matmul, "fp32_precision", None)
    return bool(matmul.allow_tf32) if precision is None else precision == "tf32"


def shared_arguments(
    inputs: Inputs, layout: HeadLayout, operands: Operands, seed: Tensor
) -> dict[str, Any]:
    """Return the arguments and constants that all kernels take, by name.

    Args:
        inputs: the inputs of attention.
        layout: layout of the inputs.
        operands: the inputs as operands.
        seed: seed of dropout, ``(1,)``; without dropout any tensor, which is not read.
    """
    mask = _mask_argument(inputs, layout)
    return {
        **operands._asdict(),
        "mask": mask.tensor,
        "alpha": _alpha_argument(inputs),
        "seed": seed,
        **_strides("query", operands.query.stride()),
        **_strides("key", operands.key.stride()),
        **_strides("value", operands.value.stride()),
        **_strides("mask", mask.strides),
        "mask_column_stride": mask.strides[-1],
        "heads": layout.heads,
        "total_heads": layout.total_heads,
        "query_count": layout.queries,
        "key_count": layout.keys,
        "size": operands.query.shape[-1],
        "value_size": operands.value.shape[-1],
        "scale": float(inputs.scale),
        "dropout_p": float(inputs.dropout_p),
        **_constants(inputs, operands, mask.kind),
    }


def _strides(name: str, strides: tuple[int, ...]) -> dict[str, int]:
    """Return the strides of a tensor ``(outer, heads, rows, columns)`` by name, without columns."""
    outer, head, row, _ = strides
    return {f"{name}_outer_stride": outer, f"{name}_head_stride": head, f"{name}_row_stride": row}


def _constants(inputs: Inputs, operands: Operands, masking: str) -> dict[str, Any]:
    """Return the constants that all kernels are compiled for, but the sides of blocks."""
    form = form_of(inputs.alpha, torch.float32)
    return {
        "each_head": isinstance(inputs.alpha, Tensor),
        "log_form": form.log_form,
        "power": form.power,
        "masking": masking,
        "has_dropout": inputs.dropout_p > 0,
        "precision": operands.precision,
        "padded_size": tile_side(operands.query.shape[-1]),
        "padded_value_size": tile_side(operands.value.shape[-1]),
    }


def _alpha_argument(inputs: Inputs) -> Tensor | int:
    """Return an alpha for each head, or the bits of one number."""
    if isinstance(inputs.alpha, Tensor):
        return kernel_alphas(inputs.alpha).contiguous()
    return beta_bits(inputs.alpha)


class _Mask(NamedTuple):
    """A mask as the kernels take it.

    Attributes:
        kind: "none", "causal", "booleans" or "numbers".
        tensor: ``(outer, heads, queries, keys)``; without a mask any tensor, which is not read.
        strides: strides of the tensor.
    """

    kind: str
    tensor: Tensor
    strides: tuple[int, ...]


def _mask_argument(inputs: Inputs, layout: HeadLayout) -> _Mask:
    """Return the mask of the inputs."""
    if inputs.mask is None:
        return _Mask("causal" if inputs.is_causal else "none", inputs.query, (0, 0, 0, 0))
    tensor = layout.split_mask(inputs.mask)
    if tensor.dtype == torch.bool:
        return _Mask("booleans", tensor.view(torch.uint8), tensor.stride())
    return _Mask("numbers", tensor, tensor.stride())
