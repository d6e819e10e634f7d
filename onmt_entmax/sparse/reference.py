r"""Alpha-entmax in plain PyTorch: the definition that the C++ code and the GPU kernels must equal.

.. math:: \mathrm{entmax}_\alpha(z) = \arg\max_p\; p^\top z + H_\alpha(p)
          = [(\alpha - 1) z - \tau]_+^{1 / (\alpha - 1)}

(Peters, Niculae and Martins 2019, equations 10 and 13; :math:`\tau` is the threshold.) Everything
is computed in float64, for any alpha from 1: a number, or one alpha for each row. `solvers` solves
rows, `derivatives` has the gradients. This module has the functions of a backend, see `backends`.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from onmt_entmax.sparse import solvers
from onmt_entmax.sparse.arguments import refuse_rows_of_minus_infinity
from onmt_entmax.sparse.derivatives import gradients
from onmt_entmax.sparse.entropy import tsallis_entropy
from onmt_entmax.sparse.precision import round_on_support, working_type

__all__ = ["conjugate", "gradients", "log_probabilities", "mapping", "scaled", "solve"]


def log_probabilities(scores: Tensor, alpha: float | Tensor) -> Tensor:
    """Return log-probabilities ``(..., n)`` in float64, -inf exactly outside the support.

    Args:
        scores: ``(..., n)`` with n >= 1, any floating-point type.
        alpha: a number >= 1, or ``(..., 1)``.

    Raises:
        ValueError: if a row is -inf everywhere (nan on a GPU).
    """
    maxima = scores.amax(-1, keepdim=True)
    refuse_rows_of_minus_infinity(maxima)
    below = scores.double() - maxima.double()
    beta = torch.as_tensor(alpha, dtype=torch.float64, device=scores.device) - 1  # () or (..., 1)
    any_up_to_two, any_above_two = _sides_of_two(alpha)
    if not any_above_two:
        return solvers.up_to_two(below, beta)
    if not any_up_to_two:
        return solvers.above_two(below, beta)
    low = solvers.up_to_two(below, beta.clamp_max(1))
    high = solvers.above_two(below, beta.clamp_min(1))
    return torch.where(beta > 1, high, low)


def _sides_of_two(alpha: float | Tensor) -> tuple[bool, bool]:
    """Return whether any alpha may be at most 2 (or nan), and whether any may be above 2.

    For a tensor that cannot be read, both are true.
    """
    if not isinstance(alpha, Tensor):
        return alpha <= 2, alpha > 2
    if not solvers.may_wait(alpha):
        return True, True
    is_above = alpha > 2
    return not bool(is_above.all()), bool(is_above.any())


def mapping(scores: Tensor, alpha: float | Tensor, logs: bool) -> Tensor:
    """Return probabilities ``(..., n)`` or their logarithms, in the type of `working_type`.

    Args:
        scores: ``(..., n)`` with n >= 1, any floating-point type.
        alpha: a number >= 1, or ``(..., 1)``.
        logs: whether to return logarithms.

    Raises:
        ValueError: if a row is -inf everywhere (nan on a GPU).
    """
    log_p, dtype = log_probabilities(scores, alpha), working_type(scores)
    return log_p.to(dtype) if logs else round_on_support(log_p.exp(), log_p > -math.inf, dtype)


def solve(scores: Tensor, alpha: float | Tensor, out: Tensor) -> tuple[Tensor, Tensor]:
    """Write probabilities, and return shifted conjugates and maxima; see `backends.solve`."""
    maxima = scores.amax(-1)
    log_p = log_probabilities(scores, alpha)
    p = log_p.exp()
    below = torch.where(p > 0, scores.double() - maxima.double().unsqueeze(-1), 0.0)
    shifted = ((p * below).sum(-1) + tsallis_entropy(p, alpha)).clamp_min(0.0)
    out.copy_(round_on_support(p, log_p > -math.inf, out.dtype))
    return shifted.to(out.dtype), maxima


def conjugate(scores: Tensor, alpha: float | Tensor) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
    """Return shifted conjugates and maxima, and what :func:`scaled` needs: the probabilities.

    Args:
        scores: ``(rows, n)``, float32 or float64.
        alpha: a number >= 1, or ``(rows, 1)``.

    Returns:
        Shifted conjugates and maxima, ``(rows,)`` each, see `backends.solve`; and the probabilities
        ``(rows, n)``.
    """
    p = torch.empty_like(scores)
    return *solve(scores, alpha, p), (p,)


def scaled(
    scores: Tensor, alpha: float | Tensor, kept: Sequence[Tensor], factors: Tensor
) -> Tensor:
    """Return the probabilities of rows, each row times its factor, ``(rows, n)``.

    Args:
        scores: unused; other backends need them.
        alpha: unused, likewise.
        kept: the third result of :func:`conjugate`.
        factors: ``(rows,)``.
    """
    (p,) = kept
    return p * factors.unsqueeze(1)
