"""The implementations of entmax, and the choice among them.

`reference` defines entmax in PyTorch, for every alpha, type and device. `cpu` (C++) is faster, and
so is `triton` (GPUs) for alpha from 1 to 2. Each is a module with the functions `mapping` and
`gradients`, and for losses `solve`, `conjugate` and `scaled`; their docstrings in `reference` say
what all of them do. `attention_backends` lists the functions for attention, which the reference
lacks. With ``TRITON_INTERPRET=1`` in the environment, the GPU kernels run on the CPU, slowly, for
tests.
"""

import os
import warnings
from functools import cache
from types import ModuleType

import torch
from torch import Tensor

from onmt_entmax.sparse import reference
from onmt_entmax.sparse.arguments import refuse_rows_of_minus_infinity
from onmt_entmax.sparse.backends import cpu
from onmt_entmax.sparse.recording import has_values

# Types of scores that the C++ code and the kernels take.
_TYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
# The C++ code and the kernels number columns in 32 bits. In rows shorter than this, 32 bits also
# suffice for offsets in bytes, at 8 bytes a score in float64.
_TOO_MANY_COLUMNS = 1 << 27


def backend_for(scores: Tensor, alpha: float | Tensor, *others: Tensor | None) -> ModuleType:
    """Return the fastest implementation for the arguments of an operation.

    The reference computes what the others cannot:

    - tensors without elements,
    - tensors whose values only PyTorch can read, see `has_values`,
    - scores of other types, and rows of `_TOO_MANY_COLUMNS` scores or more,
    - alphas above 2 on a GPU, and above `cpu.LARGEST` on a CPU,
    - devices other than CPUs and GPUs, and devices for which no code was built.

    A tensor of alphas is read once, to find the largest one. While a CUDA graph records, it cannot
    be read, and the GPU kernels are chosen, since learned alphas lie between 1 and 2. For a larger
    alpha they return nan.

    Args:
        scores: scores or probabilities, ``(..., n)``.
        alpha: a number >= 1, or a tensor of such numbers in any shape.
        others: the operation's other tensors; None is ignored.

    Returns:
        One of the modules `reference`, `cpu` and `triton`.
    """
    tensors = [tensor for tensor in (scores, alpha, *others) if isinstance(tensor, Tensor)]
    if not scores.numel() or not all(has_values(tensor) for tensor in tensors):
        return reference
    if scores.dtype not in _TYPES or scores.shape[-1] >= _TOO_MANY_COLUMNS:
        return reference
    if isinstance(alpha, Tensor):
        is_recorded = alpha.is_cuda and torch.cuda.is_current_stream_capturing()
        largest_alpha = 2.0 if is_recorded else float(alpha.detach().amax())
    else:
        largest_alpha = alpha
    if scores.is_cuda or os.environ.get("TRITON_INTERPRET") == "1":
        return _gpu(scores.device) if largest_alpha <= 2 else reference
    is_built = cpu.module is not None and scores.device.type == "cpu"
    return cpu if is_built and largest_alpha <= cpu.LARGEST else reference


@cache
def _gpu(device: torch.device) -> ModuleType:
    """Return the GPU kernels; or, if they cannot solve a row on a device, warn, and the reference.

    It tries once for each device.
    """
    try:
        from onmt_entmax.sparse.backends import triton

        triton.mapping(torch.zeros(1, 2, device=device), 1.5, False)
        return triton
    except torch.OutOfMemoryError:
        raise
    except Exception as error:
        warnings.warn(
            f"the GPU kernels of entmax cannot be used, PyTorch does their work, slower: {error}",
            RuntimeWarning,
            stacklevel=3,
        )
        return reference


def solve(scores: Tensor, alpha: float | Tensor, out: Tensor) -> tuple[Tensor, Tensor]:
    r"""Write the probabilities of rows into ``out``.

    If alpha is the number 1, no backend is needed: a few operations of PyTorch compute softmax in
    place.

    Args:
        scores: ``(rows, n)``, contiguous, float32 or float64.
        alpha: a number >= 1, or ``(rows, 1)``.
        out: ``(rows, n)``, contiguous, in the type of the scores; may be the scores.

    Returns:
        The shifted conjugate :math:`\Omega^*(z) - \max z` of each row, between 0 and log n, with
        :math:`\Omega^*` of `entmax_loss`; and the largest score. Both are ``(rows,)``. The loss of
        a class y is ``shifted + (maxima - z[y])``, which keeps its digits if all scores are far
        from 0.

    Raises:
        ValueError: if a row is -inf everywhere (nan on a GPU).
    """
    if not isinstance(alpha, Tensor) and alpha == 1:
        maxima = scores.amax(-1, keepdim=True)
        refuse_rows_of_minus_infinity(maxima)
        total = torch.sub(scores, maxima, out=out).exp_().sum(-1, keepdim=True)
        out.div_(total)
        return total.log().squeeze(-1), maxima.squeeze(-1)
    if not scores.numel():
        return scores.sum(-1), scores.sum(-1)
    solved: tuple[Tensor, Tensor] = backend_for(scores, alpha, out).solve(scores, alpha, out)
    return solved
