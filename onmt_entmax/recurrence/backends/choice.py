"""The choice of a backend for a step."""

import os

import torch
from torch import Tensor

from onmt_entmax.recurrence.backends.contract import StepBackend
from onmt_entmax.recurrence.backends.native import NativeBackend, native
from onmt_entmax.recurrence.backends.pytorch import PyTorchBackend
from onmt_entmax.recurrence.source_memory import Sources


def backend_for(like: Tensor, sources: Sources | None = None) -> type[StepBackend]:
    """Return the steps for cell states like these, or for attention to sources.

    In C++ for float32 on a CPU, as Triton kernels on a GPU, in PyTorch for everything else.
    """
    alpha, length = (1.0, 0) if sources is None else (sources.alpha, sources.keys.size(1))
    if like.is_cuda or os.environ.get("TRITON_INTERPRET") == "1":
        try:
            from onmt_entmax.recurrence.backends import triton
        except ImportError:
            return PyTorchBackend
        small = alpha <= 2 and length <= triton.LONGEST
        small &= like.dtype in (torch.float32, torch.float64)
        return triton.TritonBackend if small and triton.start(like.device) else PyTorchBackend
    # Below 1.1, powers of 1 / (alpha - 1) leave float32's range.
    exact = alpha == 1 or 1.1 <= alpha <= 2
    in_memory = like.device.type == "cpu" and type(like) is Tensor
    is_matrix = like.dim() == 2 and like.dtype == torch.float32
    return NativeBackend if native and exact and in_memory and is_matrix else PyTorchBackend
