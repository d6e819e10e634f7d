"""Random log-probabilities of a step, many of them -inf."""

import torch
from torch import Tensor


def random_log_probs(size: tuple[int, int], zeros: float, generator: torch.Generator) -> Tensor:
    """Return log-probabilities ``(rows, vocabulary)``.

    Args:
        size: the numbers of rows and tokens.
        zeros: the share of tokens with probability 0, about.
        generator: draws all.
    """
    log_probs = torch.randn(size, generator=generator).log_softmax(1)
    is_zero = torch.rand(size, generator=generator) < zeros
    return log_probs.masked_fill(is_zero, -torch.inf)
