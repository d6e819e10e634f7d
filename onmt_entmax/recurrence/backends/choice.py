"""The choice of a backend for a step: C++, Triton or PyTorch."""

import os

import torch
from torch import Tensor

from onmt_entmax.recurrence.backends.contract import StepBackend
from onmt_entmax.recurrence.backends.native import NativeBackend, native
from onmt_entmax.recurrence.backends.pytorch import PyTorchBackend
from onmt_entmax.recurrence.source_memory import RowSources


def backend_for(states: Tensor, sources: RowSources | None = None) -> type[StepBackend]:
    """Return the fastest backend that covers a step.

    It is C++ for float32 on a CPU, Triton for float32 and float64 on a GPU, and PyTorch for
    everything else. C++ and Triton do not cover every alpha, nor Triton every length of a source.

    Args:
        states: cell states ``(..., rows, hidden)``, or a tensor of their type, device and number of
            dimensions.
        sources: the sources for a step of attention; None for a step of cells.
    """
    # In tests, Triton's interpreter runs the kernels on the CPU, slowly.
    if states.is_cuda or os.environ.get("TRITON_INTERPRET") == "1":
        return _on_gpu(states, sources)
    return NativeBackend if native and _cpp_covers(states, sources) else PyTorchBackend


def _cpp_covers(states: Tensor, sources: RowSources | None) -> bool:
    """Return whether the C++ code computes a step; see `backend_for` for the arguments."""
    # Subclasses of tensors may have no memory to read, such as those that record a graph.
    if states.device.type != "cpu" or type(states) is not Tensor:
        return False
    if states.dim() != 2 or states.dtype != torch.float32:
        return False
    # Attention weights are bases to the power of 1 / (alpha - 1). Between 1 and 1.1 this exponent
    # is above 10, and would multiply the rounding of float32 by as much.
    return sources is None or sources.alpha == 1 or 1.1 <= sources.alpha <= 2


def _on_gpu(states: Tensor, sources: RowSources | None) -> type[StepBackend]:
    """Return Triton's kernels if they cover a step and start, else PyTorch.

    The arguments are those of `backend_for`.
    """
    try:
        from onmt_entmax.recurrence.backends import triton
    except ImportError:
        return PyTorchBackend
    is_covered = states.dtype in (torch.float32, torch.float64)
    if sources is not None:
        source_length = sources.memory.keys.size(1)
        is_covered &= sources.alpha <= 2 and source_length <= triton.LONGEST_SOURCE
    starts = is_covered and triton.can_start(states.device)
    return triton.TritonBackend if starts else PyTorchBackend
