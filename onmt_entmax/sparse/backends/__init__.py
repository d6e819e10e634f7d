"""Chooses who computes: a Triton kernel (triton.py), C++ (cpu.py) or PyTorch operations.

Triton is imported when the first scores on a GPU arrive, and each kernel is compiled when it is
first wanted. With ``TRITON_INTERPRET=1`` in the environment the kernels run on the CPU, slowly:
that is how they are tested.
"""

import os
import warnings
from contextlib import nullcontext
from functools import cache
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from onmt_entmax.sparse.backends import cpu

_INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
_TYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16)


def has_kernels(scores: Tensor) -> bool:
    """Whether kernels are there for such scores, the half types as they are."""
    if not (scores.is_cuda or _INTERPRETED) or torch.compiler.is_compiling():
        return False
    possible = scores.dtype in _TYPES and scores.numel() > 0 and not _failed
    return possible and _launch() is not None


def by_kernel(name: str, scores: Tensor, *arguments: Any) -> Any:
    """What a function of triton.py or cpu.py makes of scores; None where PyTorch must do it.

    PyTorch must: on a CPU, in cases that cpu.py does not cover; on a GPU, without Triton, under
    ``torch.compile``, and (after one warning) once a kernel has failed.
    """
    if not has_kernels(scores) or not _suit(scores, *arguments):
        return getattr(cpu, name)(scores, *arguments)
    try:
        # Triton starts kernels on the current device.
        with torch.cuda.device(scores.device) if scores.is_cuda else nullcontext():
            return getattr(_launch(), name)(scores, *arguments)
    except torch.OutOfMemoryError:
        raise
    except Exception as error:
        _failed.append(error)
        warnings.warn(
            f"the GPU kernels of entmax cannot be used, PyTorch does their work, slower: {error}",
            RuntimeWarning,
            stacklevel=2,
        )
        return None


# Above this alpha a threshold in float64 leaves the smallest probabilities open, see `steep_logs`.
_STEEP = 3.0
# Longer rows would need more programs than a GPU can start in the second place of a grid.
_LONGEST = 1 << 27


def _suit(scores: Tensor, alpha: float | Tensor, *more: Any) -> bool:
    """Whether kernels can work with such arguments: with tensors that have memory (under vmap they
    have none), rows that they can start on, and an alpha for which they are exact."""
    tensors = [given for given in (scores, alpha, *more) if isinstance(given, Tensor)]
    exact = isinstance(alpha, Tensor) or alpha <= _STEEP
    return (
        exact and scores.shape[-1] < _LONGEST and all(cpu.has_memory(tensor) for tensor in tensors)
    )


_failed: list[Exception] = []


@cache
def _launch() -> ModuleType | None:
    """The module that starts the kernels, if Triton is installed."""
    try:
        from onmt_entmax.sparse.backends import triton
    except ImportError:
        return None
    return triton
