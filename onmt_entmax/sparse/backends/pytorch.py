"""TEMPORARY: the interface that modules of `nn` still use; to be deleted with their imports."""

import torch
from torch import Tensor

from onmt_entmax.sparse.backends import of
from onmt_entmax.sparse.conjugate import conjugate, write_probabilities

__all__ = ["conjugate", "probabilities", "scores_gradient", "write_probabilities"]

writes_in_one_pass = False


def probabilities(scores: Tensor, alpha: float | Tensor) -> Tensor:
    """Return entmax of scores."""
    result: Tensor = of(scores, alpha).mapping(scores, alpha, False)
    return result


def scores_gradient(
    probabilities: Tensor, alpha: float | Tensor, gradient: Tensor, dtype: torch.dtype
) -> Tensor:
    """Return the gradient in the scores."""
    backend = of(probabilities, alpha, gradient)
    result: Tensor = backend.gradients(probabilities, alpha, gradient)[0].to(dtype)
    return result
