"""The compiled C++ module for a CPU, and how its functions are called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from onmt_entmax.sparse.backends.cpu_structs import Heads, Rows, pack
from onmt_entmax.sparse.backends.extension_modules import load_extension

module: Any = load_extension("onmt_entmax.sparse.backends._native")
"""The C++ module, or None if there is none. csrc/native.cpp lists its functions."""

_TYPE_CODES = {torch.float32: "f", torch.float64: "d"}  # as C++ names them


def run(function: Callable[..., None], rows: Tensor, fields: Rows | Heads) -> None:
    """Run a C++ function on contiguous rows.

    Args:
        function: a function of the module.
        rows: ``(..., n)`` with n >= 1: any of the tensors in `fields` with a number for each score.
            C++ computes in its type, float32 or float64.
        fields: the struct that the function takes.

    Raises:
        ValueError: if a row is -inf everywhere.
    """
    n = rows.shape[-1]
    function(_TYPE_CODES[rows.dtype], torch.get_num_threads(), rows.numel() // n, n, pack(fields))


def alphas_of(alpha: Tensor, rows: Tensor) -> Tensor:
    """Return the alphas of rows ``(..., n)`` as ``(..., 1)``, contiguous and in float64."""
    return alpha.detach().double().expand(*rows.shape[:-1], 1).contiguous()
