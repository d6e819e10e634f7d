"""The Tsallis entropies, which generate the entmax mappings and losses."""

import torch
from torch import Tensor

from onmt_entmax.sparse.arguments import is_in_onnx_export, is_readable


def tsallis_entropy(probabilities: Tensor, alpha: float | Tensor, dim: int = -1) -> Tensor:
    r"""Return the Tsallis entropy of distributions: Shannon's (in nats) at 1, Gini's at 2.

    .. math:: H_\alpha(p) = \frac{1}{\alpha(\alpha-1)} \sum_j (p_j - p_j^\alpha)

    Computed as ``-sum p * expm1((alpha - 1) log p) / (alpha (alpha - 1))``, with a series for small
    exponents, so that neither value nor gradient cancels near alpha = 1.
    Source: Peters, Niculae and Martins (2019), equation 9.

    Args:
        probabilities: any shape; non-negative, summing to one along ``dim``.
        alpha: a number >= 1, or a tensor that broadcasts to ``probabilities``, 1 in ``dim``.
        dim: the dimension of the classes.

    Returns:
        The shape of ``probabilities`` without ``dim``. The gradient at a probability of 0 is the
        derivative from the right; at alpha = 1, where that is infinite, 0.

    Raises:
        ValueError: if alpha is below 1 (tensors are checked on a CPU only).
    """
    valid = True
    if not isinstance(alpha, Tensor):
        valid = alpha >= 1
    elif is_readable(alpha):
        valid = bool((alpha >= 1).all())
    if not valid:
        raise ValueError(f"alpha must be at least 1 (1 is Shannon's entropy), got {alpha}")
    # Zeros add nothing to the value: log 1 = 0 stands in for their logarithm.
    positive = probabilities > 0
    logs = torch.where(positive, probabilities, 1.0).log()
    # Not `torch.as_tensor`, whose result would be a constant of a trace.
    beta = (alpha.to(logs) if isinstance(alpha, Tensor) else logs.new_full((), alpha)) - 1
    # At a probability of 0, alpha changes nothing.
    slope = -1.0 / beta.detach().clamp_min(1e-30)
    powers = torch.where(positive, logs * _expm1_ratio(beta * logs), slope)
    terms = probabilities * torch.where(positive | (beta > 0), powers, 0.0)
    return -(terms / (1 + beta)).sum(dim)


def _expm1_ratio(y: Tensor) -> Tensor:
    """Return ``expm1(y) / y``, 1 at 0; by its series near 0 where a gradient is needed."""
    differentiated, exported = torch.is_grad_enabled() and y.requires_grad, is_in_onnx_export()
    # A trace may be differentiated even if its example has no gradients. ONNX has no expm1.
    if not (differentiated or exported or torch.jit.is_tracing()):
        return torch.where(y == 0, 1.0, torch.expm1(y) / y)
    near = y.abs() < 0.5
    small, large = torch.where(near, y, 0.0), torch.where(near, 1.0, y)
    series = torch.ones_like(y)
    for n in range(14, 1, -1):
        series = 1.0 + series * small / n
    powers = large.exp() - 1 if exported else torch.expm1(large)
    return torch.where(near, series, powers / large)
