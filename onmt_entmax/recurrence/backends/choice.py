"""The choice of a backend for a step: C++, Triton or PyTorch."""

import os

import torch
from torch import Tensor

from onmt_entmax.recurrence.backends.contract import StepBackend
from onmt_entmax.recurrence.backends.native import NativeBackend, native
from onmt_entmax.recurrence.backends.pytorch import PyTorchBackend
from onmt_entmax.recurrence.source_memory import RowSources


def backend_for(states: Tensor, sources: RowSources | None = None) -> type[StepBackend]:
    """Return the fastest backend for a step.

    C++ for float32 on a CPU, Triton on a GPU, PyTorch for everything else.

    Args:
        states: cell states ``(..., rows, hidden)``, or a tensor of their type, device and rank.
        sources: what a step of attention attends to; None for a step of cells.
    """
    alpha, length = 1.0, 0
    if sources is not None:
        alpha, length = sources.alpha, sources.memory.keys.size(1)
    # In tests, Triton's interpreter runs the kernels on the CPU, slowly.
    if states.is_cuda or os.environ.get("TRITON_INTERPRET") == "1":
        return _on_gpu(states, alpha, length)
    # Between 1 and 1.1, powers of 1 / (alpha - 1) leave float32's range.
    covers_alpha = alpha == 1 or 1.1 <= alpha <= 2
    # Subclasses of tensors, such as those that record a trace, may have no memory for C++ to read.
    in_memory = states.device.type == "cpu" and type(states) is Tensor
    is_matrix = states.dim() == 2 and states.dtype == torch.float32
    return NativeBackend if native and covers_alpha and in_memory and is_matrix else PyTorchBackend


def _on_gpu(states: Tensor, alpha: float, length: int) -> type[StepBackend]:
    """Return Triton's kernels if they cover a step and start, else PyTorch."""
    try:
        from onmt_entmax.recurrence.backends import triton
    except ImportError:
        return PyTorchBackend
    covered = alpha <= 2 and length <= triton.LONGEST_SOURCE
    covered &= states.dtype in (torch.float32, torch.float64)
    return triton.TritonBackend if covered and triton.can_start(states.device) else PyTorchBackend
