"""The backends that compute entmax: PyTorch operations, C++ for CPUs, Triton kernels for GPUs.

`backend_for` is the only place that chooses among them. Triton is imported when the first scores on
a GPU arrive; with ``TRITON_INTERPRET=1`` in the environment its kernels run on the CPU, slowly, for
tests.
"""

import os
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Protocol

import torch
from torch import Tensor

from onmt_entmax.sparse.backends import cpu, pytorch
from onmt_entmax.sparse.conjugate import SPARSE_PART, Conjugate

_INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
_TYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
# Of kernels. Above it, a float64 threshold does not determine the smallest probabilities: see
# `logs_above_two` in solvers.py.
LARGEST_ALPHA = 3.0


class Backend(Protocol):
    """Operations on rows of scores, without autograd; each backend is a module of these functions.

    Scores are float32 or float64, or a half type where :func:`has_kernels` is true, and have at
    least one row and one column. Alpha is a number >= 1, or a tensor with one number for each row
    and 1 in the last dimension. On a CPU, a row of scores that are all -inf raises ValueError; on a
    GPU it gives nan, to avoid a synchronisation.
    """

    writes_in_one_pass: bool
    """Whether writing all rows at once is faster than sparse and dense rows apart."""

    def probabilities(self, scores: Tensor, alpha: float | Tensor) -> Tensor:
        """Return entmax of scores ``(..., n)``, in float32 or float64."""

    def log_probabilities(self, scores: Tensor, alpha: float | Tensor) -> Tensor:
        """Return the logarithm of entmax of scores ``(..., n)``, -inf outside the support."""

    def conjugate(
        self,
        scores: Tensor,
        alpha: float | Tensor,
        keep: bool = False,
        sparse_part: float = SPARSE_PART,
    ) -> Conjugate:
        """Return conjugates of rows, and what their gradient needs.

        Args:
            scores: ``(rows, n)``, contiguous.
            alpha: a number, or ``(rows, 1)``.
            keep: whether the probabilities of dense rows may be kept if the scores are few.
            sparse_part: the part of a row up to which its support is returned as entries. A hint:
                the PyTorch code decides by its search for candidates.
        """

    def write_probabilities(
        self,
        scores: Tensor,
        alpha: float | Tensor,
        maxima: Tensor,
        threshold: Tensor,
        out: Tensor,
        factors: Tensor | None = None,
    ) -> None:
        """Write the probabilities of solved rows into ``out``.

        Args:
            scores: ``(rows, n)``, contiguous.
            alpha: a number, or ``(rows, 1)``.
            maxima: of `Conjugate`, ``(rows, 1)``.
            threshold: of `Conjugate`, ``(rows, 1)``.
            out: ``(rows, n)``, contiguous; may be the scores.
            factors: ``(rows,)`` to multiply the rows by.
        """

    def scores_gradient(
        self, probabilities: Tensor, alpha: float | Tensor, gradient: Tensor, dtype: torch.dtype
    ) -> Tensor:
        """Return the gradient in the scores, given the gradient in the probabilities.

        Args:
            probabilities: ``(..., n)``.
            alpha: a number, or ``(..., 1)``.
            gradient: in the probabilities, ``(..., n)``.
            dtype: of the scores, and of the result.
        """

    def log_scores_gradient(self, logs: Tensor, alpha: float | Tensor, gradient: Tensor) -> Tensor:
        """Return the gradient in the scores ``(..., n)``, given that in the log-probabilities.

        Gradients outside the support are ignored.
        """


def backend_for(scores: Tensor, alpha: float | Tensor, *others: Tensor | None) -> Backend:
    """Choose the fastest backend that covers the arguments of an operation.

    Args:
        scores: the scores, or the probabilities of `Backend.scores_gradient`.
        alpha: a number, or a tensor.
        others: the operation's other tensors.
    """
    kernels = kernels_for(scores, alpha, *others)
    if kernels is not None:
        backend: Backend = kernels
        return backend
    return cpu if cpu.covers(scores, alpha, *others) else pytorch


def solve_(scores: Tensor, alpha: float) -> tuple[Tensor, Tensor]:
    """Replace scores by their probabilities.

    Args:
        scores: ``(rows, n)`` float32 or float64, contiguous; overwritten.
        alpha: a number >= 1.

    Returns:
        The conjugate minus the largest score, and the largest score, both ``(rows,)``: the loss of
        a class is ``conjugate + (maximum - its score)``.
    """
    if not scores.numel():
        return scores.sum(1), scores.sum(1)
    backend = backend_for(scores, alpha)
    solved = backend.conjugate(scores, alpha, sparse_part=0.0)
    backend.write_probabilities(scores, alpha, solved.maxima, solved.threshold, scores)
    return solved.shifted.to(scores.dtype), solved.maxima.squeeze(1)


def gradients_for(probabilities: Tensor, alpha: Tensor, gradient: Tensor) -> ModuleType | None:
    """Return the backend whose `gradients` returns those in scores and alphas at once, or None."""
    kernels = kernels_for(probabilities, alpha, gradient)
    if kernels is None and cpu.covers_gradients(probabilities, alpha, gradient):
        return cpu
    return kernels


def kernels_for(scores: Tensor, alpha: float | Tensor, *others: Tensor | None) -> ModuleType | None:
    """Return the Triton backend if it covers the arguments: it has operations of its own."""
    if has_kernels(scores):
        from onmt_entmax.sparse.backends import triton

        if triton.covers(scores, alpha, *others):
            return triton
    return None


def has_kernels(scores: Tensor) -> bool:
    """Return whether Triton kernels take such scores; half types then need no conversion."""
    if not (scores.is_cuda or _INTERPRETED) or torch.compiler.is_compiling():
        return False
    return scores.dtype in _TYPES and scores.numel() > 0 and _triton_works()


def kernels_start(device: torch.device) -> bool:
    """Return whether kernels start on a GPU; a failure, as without a C compiler, is a warning."""
    scores = torch.zeros(1, 2, device=device)
    backend_for(scores, 1.5).probabilities(scores, 1.5)
    return has_kernels(scores)


def _triton_works() -> bool:
    if not _has_triton():
        return False
    from onmt_entmax.sparse.backends import triton

    return not triton.failures


@cache
def _has_triton() -> bool:
    try:
        import_module("onmt_entmax.sparse.backends.triton")
    except ImportError:
        return False
    return True
