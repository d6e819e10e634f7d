"""The structs that the functions of the compiled C++ module take.

Each class here mirrors a struct in csrc/native.cpp: its name, and the names, types and order of its
fields. **C++ checks only the size of the whole**: two fields in the wrong order would go unnoticed,
so change both files together.
"""

from __future__ import annotations

import struct
from typing import NamedTuple, get_type_hints

from torch import Tensor


class Rows(NamedTuple):
    """Rows of scores for `map_rows` and `scale_rows`: the struct ``Rows`` of csrc/native.cpp.

    `map_rows` writes the fields from `out` to `value` for which there is memory. All tensors are
    contiguous. Those without a type here are float32 or float64, like the scores.

    Attributes:
        alpha: one alpha for all rows; C++ does not read it if there are `alphas`.
        alphas: an alpha for each row, ``(rows,)``, float64.
        scores: ``(rows, n)``.
        out: ``(rows, n)``, receives probabilities or logarithms; may be the scores.
        shifted: ``(rows,)``, shifted conjugates, see `backends.solve`.
        maxima: ``(rows,)``, largest scores.
        logs: whether to write logarithms.
        threshold: ``(rows, 2)``, float64: thresholds and, above alpha 2, smallest probabilities.
        sizes: ``(rows,)``, int64: sizes of supports; -1 if larger than `room`.
        column: ``(rows, room)``, int32: columns of the supports.
        value: ``(rows, room)``, probabilities of the supports, in the type of the scores.
        room: size of the largest support that is kept.
        factor: ``(rows,)``, by which `scale_rows` multiplies the probabilities of each row.
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


# Values of `Heads.mask_kind`. Only the last two read the tensor `Heads.mask`.
NO_MASK, CAUSAL, BOOLEANS, NUMBERS = range(4)


class Heads(NamedTuple):
    """Heads of attention for `forward` and `backward`: the struct ``Heads`` of csrc/native.cpp.

    `forward` turns scores into weights. `backward` turns gradients with respect to weights into
    gradients with respect to scores. Both work on ``count`` adjacent heads. All tensors but the
    mask are contiguous. Those without a type here are float32 or float64, all the same.

    Attributes:
        first: number of the first head, counted over all ``(outer, heads)``.
        queries: number of queries of a head.
        alpha: alphas of the heads, ``(heads,)``, float64.
        heads: number of alphas.
        mask: booleans or numbers ``(outer, heads, queries, keys)``, whose last stride is 1.
        mask_kind: `NO_MASK`, `CAUSAL`, `BOOLEANS` or `NUMBERS`.
        mask_outer: the mask's stride of outer indices, in elements.
        mask_head: the mask's stride of heads, in elements.
        mask_row: the mask's stride of queries, in elements.
        scale: factor of the scores in `forward`, and of their gradient in `backward`.
        dropped_part: probability of dropout.
        seed: seed of dropout.
        weights: scores, which `forward` replaces by weights, ``(count, queries, keys)``; those that
            dropout drops are negative.
        used: receives weights after dropout, ``(count, queries, keys)``; None without dropout.
        incoming: gradient with respect to the weights after dropout, ``(count, queries, keys)``.
        gradient: receives the gradient with respect to the scores, ``(count, queries, keys)``; may
            be the memory of `incoming`.
        alpha_gradient: receives the part of each query in the gradient with respect to alpha,
            ``(count, queries)``, float64; None if it is not wanted.
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


def pack(fields: Rows | Heads) -> bytes:
    """Return the bytes of a C++ struct, with addresses in place of tensors, and 0 for None.

    They hold no reference to the tensors, which must live until C++ returns.
    """
    # This takes 2 us, which counts for small rows: `isinstance(x, Tensor)` would be slower.
    numbers = [
        0 if x is None else x if isinstance(x, (int, float)) else x.data_ptr() for x in fields
    ]
    return _LAYOUTS[type(fields)].pack(*numbers)
