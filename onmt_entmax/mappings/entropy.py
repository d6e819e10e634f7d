"""The Tsallis entropies, which generate the entmax mappings and losses."""

import torch
from torch import Tensor

from onmt_entmax.mappings.native import has_memory, is_traced


def tsallis_entropy(probabilities: Tensor, alpha: float | Tensor, dim: int = -1) -> Tensor:
    r"""Tsallis entropy of distributions: Shannon's (in nats) at 1, Gini's at 2.

    .. math:: H_\alpha(p) = \frac{1}{\alpha(\alpha-1)} \sum_j (p_j - p_j^\alpha)

    Computed as ``-sum p * expm1((alpha - 1) log p) / (alpha (alpha - 1))``, which does not cancel
    when alpha is near 1. Source: Peters, Niculae and Martins (2019), equation 9.

    Args:
        probabilities: any shape; non-negative, summing to one along ``dim``.
        alpha: a number >= 1, or a tensor that broadcasts to ``probabilities``, 1 in ``dim``.
        dim: the dimension of the classes.

    Returns:
        The shape of ``probabilities`` without ``dim``. Its gradient at a probability of 0 is that
        from the right; at alpha = 1, where that is infinite, 0.

    Raises:
        ValueError: if alpha is below 1 (of a tensor, where it can be looked at without waiting).
    """
    if isinstance(alpha, Tensor):
        looked_at = alpha.device.type == "cpu" and has_memory(alpha) and not is_traced()
    else:
        looked_at = True
    if looked_at and not bool(torch.as_tensor(alpha >= 1).all()):
        raise ValueError(f"alpha must be at least 1 (1 is Shannon's entropy), got {alpha}")
    # log 1 = 0 stands for the zeros, where p^(alpha - 1) is 0. They add nothing to the value.
    positive = probabilities > 0
    logs = torch.where(positive, probabilities, 1.0).log()
    beta = torch.as_tensor(alpha, dtype=logs.dtype, device=logs.device) - 1
    shannon = beta == 0
    safe = beta.masked_fill(shannon, 1)
    powers = torch.where(positive, torch.expm1(safe * logs), -1.0) / safe
    terms = probabilities * torch.where(shannon, logs, powers)
    return -(terms / (1 + beta)).sum(dim)
