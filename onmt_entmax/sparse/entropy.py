"""The Tsallis entropies, which generate the entmax mappings and losses."""

import torch
from torch import Tensor

from onmt_entmax.sparse.recording import is_in_onnx_export, is_readable_now

# A lower bound of alpha - 1 in a quotient that is not used where alpha is 1. It is far below the
# difference of two numbers near 1, and its reciprocal is finite in float32.
_NO_DIVISION_BY_ZERO = 1e-30
# Below this |y|, this many terms of the series of expm1(y) / y give all digits of a float64: the
# first one that is left out is y**14 / 15!, or 5e-17.
_SERIES_BOUND, _SERIES_TERMS = 0.5, 14


def tsallis_entropy(probabilities: Tensor, alpha: float | Tensor, dim: int = -1) -> Tensor:
    r"""Return the Tsallis entropy of distributions: Shannon's (in nats) at 1, Gini's at 2.

    .. math:: H_\alpha(p) = \frac{1}{\alpha(\alpha-1)} \sum_j (p_j - p_j^\alpha)

    It is computed as ``-sum p * expm1((alpha - 1) log p) / (alpha (alpha - 1))``, with a series for
    small exponents, so that no digits cancel near alpha = 1, neither in the value nor in the
    gradient. Source: Peters, Niculae and Martins (2019), equation 9.

    Args:
        probabilities: any shape; non-negative, summing to one along ``dim``.
        alpha: a number >= 1, or a tensor that broadcasts to ``probabilities``, with size 1 in
            ``dim``.
        dim: the dimension of the classes.

    Returns:
        The shape of ``probabilities`` without ``dim``. The gradient with respect to a probability
        of 0 is the derivative from the right; at alpha = 1, where that is infinite, it is 0.

    Raises:
        ValueError: if alpha is below 1 (tensors are checked on a CPU only).
    """
    _check_alpha(alpha)
    # A probability of 0 adds nothing to the value: log 1 = 0 stands in for its logarithm.
    positive = probabilities > 0
    logs = torch.where(positive, probabilities, 1.0).log()
    # Not `torch.as_tensor`, whose result would be a constant of a trace.
    beta = (alpha.to(logs) if isinstance(alpha, Tensor) else logs.new_full((), alpha)) - 1
    # The factors of p in sum p (p^beta - 1) / beta. At p = 0 the factor is the derivative from the
    # right: -1 / beta, or 0 at alpha = 1, where that is infinite. There, it has no gradient with
    # respect to alpha, since the factor is multiplied by p = 0.
    factors_of_positive = logs * _expm1_ratio(beta * logs)
    factor_of_zero = -1.0 / beta.detach().clamp_min(_NO_DIVISION_BY_ZERO)
    factors = torch.where(positive, factors_of_positive, factor_of_zero)
    factors = torch.where(positive | (beta > 0), factors, 0.0)
    return -(probabilities * factors / (1 + beta)).sum(dim)


def _check_alpha(alpha: float | Tensor) -> None:
    """Check that alphas are at least 1, if they can be read without waiting for a GPU.

    Raises:
        ValueError: if one is not.
    """
    if not isinstance(alpha, Tensor):
        is_valid = alpha >= 1
    else:
        is_valid = not is_readable_now(alpha) or bool((alpha >= 1).all())
    if not is_valid:
        raise ValueError(f"alpha must be at least 1 (1 is Shannon's entropy), got {alpha}")


def _expm1_ratio(y: Tensor) -> Tensor:
    """Return ``expm1(y) / y``, which is 1 at 0.

    If the gradient is needed, or may be needed later, as in a trace, a series replaces the quotient
    near 0. It also does so in ONNX files, which have no expm1.

    Args:
        y: any shape; the result has the same.
    """
    is_differentiated = torch.is_grad_enabled() and y.requires_grad
    is_exported = is_in_onnx_export()
    if not (is_differentiated or is_exported or torch.jit.is_tracing()):
        return torch.where(y == 0, 1.0, torch.expm1(y) / y)
    near = y.abs() < _SERIES_BOUND
    small, large = torch.where(near, y, 0.0), torch.where(near, 1.0, y)
    # 1 + y/2 (1 + y/3 (1 + ...))
    series = torch.ones_like(y)
    for n in range(_SERIES_TERMS, 1, -1):
        series = 1.0 + series * small / n
    minus_one = large.exp() - 1 if is_exported else torch.expm1(large)
    return torch.where(near, series, minus_one / large)
