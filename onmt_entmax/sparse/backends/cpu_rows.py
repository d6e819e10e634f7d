"""Entmax of rows in C++, for float32 and float64 on a CPU.

``csrc/native_threshold.h`` explains the method, ``csrc/native_anchor.h`` that above alpha 2. Each
row stays in the cache. The mapping reads the scores once and writes once, its gradient reads twice
and writes once.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from onmt_entmax.sparse.arguments import refuse_rows_without_answer, working_type
from onmt_entmax.sparse.backends.cpu_module import Heads, Rows, alphas_of, module, run

# A support of up to this part of a row is kept.
_ROOM = 32


def mapping(scores: Tensor, alpha: float | Tensor, logs: bool) -> Tensor:
    """Return probabilities ``(..., n)`` or their logarithms; see `reference.mapping`."""
    scores = scores.to(working_type(scores)).contiguous()
    out = torch.empty_like(scores)
    _run(module.map_rows, Rows(*_alphas(alpha, scores), scores, out=out, logs=logs))
    return out


def solve(scores: Tensor, alpha: float | Tensor, out: Tensor) -> tuple[Tensor, Tensor]:
    """Write probabilities of rows, return shifted conjugates and maxima; see `backends.solve`."""
    shifted, maxima = scores.new_empty(len(scores)), scores.new_empty(len(scores))
    rows = Rows(*_alphas(alpha, scores), scores, out=out, shifted=shifted, maxima=maxima)
    _run(module.map_rows, rows)
    return shifted, maxima


def conjugate(scores: Tensor, alpha: float | Tensor) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
    """Return shifted conjugates, maxima, and what :func:`scaled` needs: small supports."""
    rows, room = len(scores), scores.shape[1] // _ROOM
    shifted, maxima = scores.new_empty(rows), scores.new_empty(rows)
    threshold = torch.empty(rows, 2, dtype=torch.float64, device=scores.device)
    sizes = torch.empty(rows, dtype=torch.int64, device=scores.device)
    column = torch.empty(rows, room, dtype=torch.int32, device=scores.device)
    value = scores.new_empty(rows, room)
    values = Rows(
        *_alphas(alpha, scores),
        scores,
        shifted=shifted,
        maxima=maxima,
        threshold=threshold,
        sizes=sizes,
        column=column,
        value=value,
        room=room,
    )
    _run(module.map_rows, values)
    return shifted, maxima, (maxima, threshold, sizes, column, value)


def scaled(
    scores: Tensor, alpha: float | Tensor, kept: Sequence[Tensor], factors: Tensor
) -> Tensor:
    """Return the probabilities of rows times ``factors`` ``(rows,)``; see :func:`conjugate`."""
    maxima, threshold, sizes, column, value = kept
    out = torch.empty_like(scores)
    values = Rows(
        *_alphas(alpha, scores),
        scores,
        out=out,
        maxima=maxima,
        threshold=threshold,
        sizes=sizes,
        column=column,
        value=value,
        room=value.shape[1],
        factor=factors.contiguous(),
    )
    _run(module.scale_rows, values)
    return out


def gradients(
    probabilities: Tensor, alpha: float | Tensor, gradient: Tensor, of_alpha: bool = False
) -> tuple[Tensor, Tensor | None]:
    """Return the gradients in the scores, and with ``of_alpha`` in each row's alpha ``(..., 1)``.

    Args:
        probabilities: ``(..., n)``.
        alpha: a number, or ``(..., 1)``.
        gradient: in the probabilities.
        of_alpha: whether that in alpha is wanted.
    """
    probabilities = probabilities.contiguous()
    gradient = gradient.to(probabilities.dtype).contiguous()
    alphas = alphas_of(torch.as_tensor(alpha, dtype=torch.float64, device="cpu"), probabilities)
    out = torch.empty_like(probabilities)
    in_alpha = None
    if of_alpha:
        in_alpha = probabilities.new_empty(*probabilities.shape[:-1], 1, dtype=torch.float64)
    # A row is a head of attention with one query, without mask, scale and dropout.
    heads = Heads(
        first=0,
        queries=1,
        alpha=alphas,
        heads=alphas.numel(),
        weights=probabilities,
        incoming=gradient,
        gradient=out,
        alpha_gradient=in_alpha,
    )
    run(module.backward, probabilities, heads)
    return out, in_alpha


def _alphas(alpha: float | Tensor, scores: Tensor) -> tuple[float, Tensor | None]:
    """Return the fields `alpha` and `alphas` of `Rows`, of which C++ reads the second if there."""
    if isinstance(alpha, Tensor):
        return 2.0, alphas_of(alpha, scores)
    return alpha, None


def _run(function: Callable[..., None], rows: Rows) -> None:
    """Run a C++ function on rows of scores.

    Raises:
        ValueError: a row is -inf everywhere.
    """
    try:
        run(function, rows.scores, rows)
    except ValueError:
        refuse_rows_without_answer(rows.scores.amax(-1))
        raise
