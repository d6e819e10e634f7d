"""The compiled C++ module for a CPU, and the structs that its functions take.

The module exists where the package was installed with a C++ compiler and ``ONMT_ENTMAX_NATIVE`` is
not 0. Each function takes rows ``(rows, n)`` and a packed struct with the addresses of tensors; the
tensors must live until it returns.
"""

from __future__ import annotations

import os
import struct
import warnings
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple, get_type_hints

import torch
from torch import Tensor


def load(name: str) -> ModuleType | None:
    """Return a C++ extension module of this package, or None without it.

    One that was built but cannot be loaded, for another machine or Python, is warned of.
    """
    if os.environ.get("ONMT_ENTMAX_NATIVE") == "0":
        return None
    try:
        return import_module(name)
    except ModuleNotFoundError:  # installed without a compiler
        return None
    except ImportError as error:
        warnings.warn(
            f"{name} cannot be loaded, PyTorch does its work, slower: {error}",
            RuntimeWarning,
            stacklevel=2,
        )
        return None


module: Any = load("onmt_entmax.sparse.backends._native")
_TYPES = {torch.float32: "f", torch.float64: "d"}  # as C++ names them


class Rows(NamedTuple):
    """Rows of scores for `map_rows` and `scale_rows`: the struct ``Rows`` of csrc/native.cpp.

    The fields are in the order of C++, which is not checked, but for the size of the whole. A
    tensor becomes its address, None becomes a null pointer.

    Attributes:
        alpha: of all rows; not read if there are `alphas`.
        alphas: of each row, ``(rows,)``, float64.
        scores: ``(rows, n)``.
        out: ``(rows, n)``, probabilities or logarithms; may be the scores.
        shifted: ``(rows,)``, shifted conjugates.
        maxima: ``(rows,)``, largest scores.
        logs: whether to write logarithms.
        threshold: ``(rows, 2)``, float64: thresholds and, above alpha 2, smallest probabilities.
        sizes: ``(rows,)``, int64: sizes of supports; -1 if larger than `room`. In C++ it is
            ``count``, a name that a tuple has.
        column: ``(rows, room)``, int32: columns of the supports.
        value: ``(rows, room)``, scores of the supports.
        room: the largest support that is kept.
        factor: ``(rows,)``, of the probabilities that `scale_rows` writes.
    """

    alpha: float
    alphas: Tensor | None
    scores: Tensor
    out: Tensor | None = None
    shifted: Tensor | None = None
    maxima: Tensor | None = None
    logs: bool = False
    threshold: Tensor | None = None
    sizes: Tensor | None = None
    column: Tensor | None = None
    value: Tensor | None = None
    room: int = 0
    factor: Tensor | None = None


# Values of `Heads.mask_kind`; the latter two are masks with memory.
NO_MASK, CAUSAL, BOOLEANS, NUMBERS = range(4)


class Heads(NamedTuple):
    """Heads of attention for `forward` and `backward`: the struct ``Heads`` of csrc/native.cpp.

    `forward` turns scores into weights, `backward` turns gradients in weights into those in scores.
    Fields become numbers as those of `Rows` do.

    Attributes:
        first: number of the first head, of all ``(outer, heads)``.
        queries: of a head.
        alpha: ``(heads,)``, float64.
        heads: number of alphas.
        mask: booleans or numbers ``(outer, heads, queries, keys)``.
        mask_kind: `NO_MASK`, `CAUSAL`, `BOOLEANS` or `NUMBERS`.
        mask_outer: the mask's stride of outer indices, in elements.
        mask_head: the mask's stride of heads, in elements.
        mask_row: the mask's stride of queries, in elements.
        scale: of the scores; in the gradient, of the result.
        dropped_part: probability of dropout.
        seed: of dropout.
        weights: ``(count, queries, keys)``; those that dropout drops are negative.
        used: weights after dropout, ``(count, queries, keys)``; None without dropout.
        incoming: gradient in the weights as they are used, ``(count, queries, keys)``.
        gradient: gradient in the scores, ``(count, queries, keys)``; may be `incoming`.
        alpha_gradient: ``(count, queries)``, float64; None if it is not wanted.
    """

    first: int
    queries: int
    alpha: Tensor
    heads: int
    mask: Tensor | None = None
    mask_kind: int = NO_MASK
    mask_outer: int = 0
    mask_head: int = 0
    mask_row: int = 0
    scale: float = 1.0
    dropped_part: float = 0.0
    seed: int = 0
    weights: Tensor | None = None
    used: Tensor | None = None
    incoming: Tensor | None = None
    gradient: Tensor | None = None
    alpha_gradient: Tensor | None = None


def _layout(fields: type[Rows] | type[Heads]) -> struct.Struct:
    """Return the layout of a C++ struct: a double for each float, else 64 bits or an address."""
    kinds = get_type_hints(fields).values()
    return struct.Struct("".join("d" if kind is float else "q" for kind in kinds))


_LAYOUTS = {Rows: _layout(Rows), Heads: _layout(Heads)}


def run(function: Callable[..., None], rows: Tensor, values: Rows | Heads) -> None:
    """Run a C++ function on contiguous rows ``(..., n)``.

    Args:
        function: of the module.
        rows: of the type and size of those that `values` names.
        values: the struct that the function takes.

    Raises:
        ValueError: a row is -inf everywhere.
    """
    # Small rows wait for this line: it asks for None and numbers first, since to ask whether a
    # value is a tensor takes longer, and it stands here, not in a function for one value.
    numbers = [
        0 if x is None else x if isinstance(x, (int, float)) else x.data_ptr() for x in values
    ]
    packed = _LAYOUTS[type(values)].pack(*numbers)
    n = rows.shape[-1]
    function(_TYPES[rows.dtype], torch.get_num_threads(), rows.numel() // n, n, packed)


def alphas_of(alpha: Tensor, rows: Tensor) -> Tensor:
    """Return the alphas ``(..., 1)`` of rows one after the other, in float64."""
    return alpha.detach().double().expand(*rows.shape[:-1], 1).contiguous()
