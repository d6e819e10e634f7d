"""TEMPORARY: what modules of `nn` still import from here; to be deleted with their imports."""

import torch
from torch import Tensor

from onmt_entmax.sparse.backends import backend_for, solve
from onmt_entmax.sparse.conjugate import Conjugate


def all_probabilities(scores: Tensor, alpha: float, solved: Conjugate) -> Tensor:
    """Return the probabilities ``(rows, n)`` of solved rows, sparse and dense ones."""
    sparse = solved.entries.row.numel() > 0
    result = torch.zeros_like(scores) if sparse else torch.empty_like(scores)
    result.view(-1).scatter_(0, solved.entries.position, solved.entries.probability)
    for begin, end in solved.dense:
        rows = slice(begin, end)
        given = (scores[rows], alpha, solved.maxima[rows], solved.threshold[rows], result[rows])
        backend_for(*given).write_probabilities(*given)
    return result


def conjugate_operator(scores: Tensor, alpha: float) -> tuple[Tensor, Tensor, Tensor]:
    """Return shifted conjugates, largest scores and probabilities of rows."""
    probabilities = torch.empty_like(scores)
    return *solve(scores, alpha, probabilities), probabilities
