"""Entmax and its logarithm: from scores to probabilities, for any alpha from softmax upwards.

``alpha`` is 1 for softmax, 1.5 for 1.5-entmax, 2 for sparsemax; any number from 1 up will do.
Sources: Martins and Astudillo (2016), Peters, Niculae and Martins (2019), and for the gradient in
alpha Correia, Niculae and Martins (2019).
"""

from collections.abc import Callable

import torch
from torch import Tensor

from onmt_entmax.mappings.arguments import checked_alpha, working_type
from onmt_entmax.mappings.autograd import Entmax, LogEntmax, LongEntmax
from onmt_entmax.mappings.compiled import entmax_operator, log_entmax_operator
from onmt_entmax.mappings.device import has_kernels
from onmt_entmax.mappings.entropy import tsallis_entropy
from onmt_entmax.mappings.selection import MEDIUM
from onmt_entmax.mappings.threshold import refuse_rows_without_answer
from onmt_entmax.mappings.tracing import is_traced

__all__ = ["entmax", "log_entmax", "tsallis_entropy"]

# From this many scores on, it pays to look for the support before solving.
_LONG_WORK = 1 << 16


def entmax(scores: Tensor, alpha: float | Tensor = 1.5, dim: int = -1) -> Tensor:
    r"""Probabilities of scores by alpha-entmax, with true zeros when alpha is above 1.

    .. math:: \arg\max_p \; p^\top z + H_\alpha(p), \qquad p \text{ a distribution}

    with the Tsallis entropy of :func:`tsallis_entropy` (Peters, Niculae and Martins 2019,
    equation 10). A score of -inf, or more than 1 / (alpha - 1) under the largest, gets an exact 0.
    Gradients of gradients are there; the transforms of `torch.func` (vmap, jacrev) and forward mode
    are not.

    Args:
        scores: any shape, floating point; float16 and bfloat16 are computed in float32. Scores
            that are all -inf along ``dim`` have no answer.
        alpha: a number >= 1, or a tensor of such numbers that broadcasts to ``scores`` with size 1
            in ``dim`` (for example (heads, 1, 1) with scores (batch, heads, queries, keys)). A
            tensor may be a parameter: it gets its gradient, at alpha = 1 too; make it of a free one
            that keeps it above 1 (``1 + sigmoid(a)``, as Correia, Niculae and Martins 2019 do). It
            takes several times as long as a number, and `torch.compile` makes a graph break there.
        dim: the dimension to normalise.

    Returns:
        Probabilities, the shape and type of ``scores`` (float32 under autocast, on a CPU too).

    Raises:
        ValueError: if alpha is below 1 or does not fit, the scores are not floating point, or are
            all -inf in a row (for alpha = 1 too, where PyTorch's softmax returns nan). Where
            looking for such a row or at such a tensor would mean waiting, as on a GPU, it gives
            nan.
        IndexError: if there is no such dimension.
    """
    return _along_dim(_entmax_last, scores, alpha, dim)


def log_entmax(scores: Tensor, alpha: float | Tensor = 1.5, dim: int = -1) -> Tensor:
    """Logarithm (natural) of :func:`entmax`, -inf exactly outside the support.

    Membership and logarithm both come from how far a score is above the threshold, so an entry
    whose probability is too small for its type still has a finite logarithm. In training, what
    arrives as gradient for an entry of -inf is not used.

    Args, returns and raises: as :func:`entmax`.
    """
    return _along_dim(_log_entmax_last, scores, alpha, dim)


def _along_dim(
    mapping: Callable[[Tensor, float | Tensor], Tensor],
    scores: Tensor,
    alpha: float | Tensor,
    dim: int,
) -> Tensor:
    """Apply a mapping of the last dimension, with alpha as :func:`checked_alpha` returns it."""
    given, dimensions = scores.dtype, scores.dim()
    dtype = working_type(scores)
    if dimensions == 0:
        return _along_dim(mapping, scores.unsqueeze(0), alpha, dim).squeeze(0)
    if not -dimensions <= dim < dimensions:
        raise IndexError(f"dim must be from {-dimensions} to {dimensions - 1}, got {dim}")
    checked = checked_alpha(alpha, scores, dim)
    if given != dtype and torch.is_autocast_enabled(scores.device.type):
        given = dtype
    if scores.numel() == 0:
        return scores.to(given, copy=True)
    if scores.dtype != dtype and not has_kernels(scores):
        scores = scores.to(dtype)
    if dim in (-1, dimensions - 1):
        result = mapping(scores, checked)
    else:
        rows = checked.movedim(dim, -1) if isinstance(checked, Tensor) else checked
        result = mapping(scores.movedim(dim, -1), rows).movedim(-1, dim).contiguous()
    return result if result.dtype == given else result.to(given)


def _entmax_last(scores: Tensor, alpha: float | Tensor) -> Tensor:
    if isinstance(alpha, Tensor):
        return Entmax.apply(scores, None, alpha)
    if alpha == 1:
        return _checked_softmax(torch.softmax(scores, -1, working_type(scores)), scores)
    if is_traced():
        return entmax_operator(scores, alpha)
    if scores.shape[-1] >= MEDIUM and scores.numel() >= _LONG_WORK and not has_kernels(scores):
        return LongEntmax.apply(scores, alpha)[0]
    return Entmax.apply(scores, alpha, None)


def _log_entmax_last(scores: Tensor, alpha: float | Tensor) -> Tensor:
    if isinstance(alpha, Tensor):
        return LogEntmax.apply(scores, None, alpha)
    if alpha == 1:
        logs = _checked_softmax(torch.log_softmax(scores, -1, working_type(scores)), scores)
        if not logs.requires_grad:
            return logs
        # What arrives for an entry of -inf stops here: times its probability it would be nan.
        return torch.where(logs == -torch.inf, -torch.inf, logs)
    if is_traced():
        return log_entmax_operator(scores, alpha)
    return LogEntmax.apply(scores, alpha, None)


def _checked_softmax(result: Tensor, scores: Tensor) -> Tensor:
    """The result, unless a row of the scores is -inf everywhere (the result is nan there)."""
    looking = scores.device.type == "cpu" and not is_traced()
    if looking and bool(result.detach()[..., 0].isnan().any()):
        refuse_rows_without_answer(scores.amax(-1))
    return result
