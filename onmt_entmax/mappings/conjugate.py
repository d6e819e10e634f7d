r"""The conjugate of the negative Tsallis entropy, which every entmax loss starts from."""

import torch
from torch import Tensor

from onmt_entmax.mappings.entropy import tsallis_entropy
from onmt_entmax.mappings.threshold import (
    has_power_form,
    power,
    refuse_rows_without_answer,
    solve_log,
    solve_power,
)


def conjugate(scores: Tensor, alpha: float | Tensor) -> tuple[Tensor, Tensor]:
    r"""Conjugate :math:`\max_p p^\top z + H_\alpha(p)` and its gradient, the probabilities.

    Written through the threshold, where the sums of ``p z`` and of the entropy do not cancel:
    ``max z + (sum p u + tau + (1 + tau) / beta) / alpha`` with margins ``u`` in the power form, and
    ``max z + s - beta H(p)`` in the log form. The first is the dual objective, flat at the
    threshold, so that a rounding error of the threshold enters squared.

    Args:
        scores: (rows, n), n >= 1, float32 or float64; no autograd.
        alpha: a number >= 1, or (rows, 1).

    Returns:
        The conjugates (rows,) and the probabilities (rows, n).
    """
    maxima = scores.amax(-1, keepdim=True)
    if has_power_form(alpha):
        beta = float(alpha) - 1
        form = solve_power(scores, float(alpha))
        probabilities = power(form.margin, beta)
        energy = torch.linalg.vecdot(probabilities, form.margin).unsqueeze(-1)
        dual = (energy + form.threshold + (1 + form.threshold) / beta) / alpha
        return (maxima + dual).squeeze(-1), probabilities
    if not isinstance(alpha, Tensor) and alpha == 1:
        conjugates = torch.logsumexp(scores, -1)
        if bool(torch.isneginf(conjugates).any()):
            refuse_rows_without_answer(conjugates)
        return conjugates, torch.softmax(scores, -1)
    logs, shift = solve_log(scores, alpha)
    exact = logs.exp()
    entropy = tsallis_entropy(exact, alpha).unsqueeze(-1)
    conjugates = maxima.double() + shift - (alpha - 1) * entropy
    return conjugates.squeeze(-1).to(scores.dtype), exact.to(scores.dtype)
