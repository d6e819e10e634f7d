"""Entmax of rows in C++, for float32 and float64 on a CPU.

``csrc/native_threshold.h`` explains the method up to alpha 2, ``csrc/native_anchor.h`` the method
above. Each row stays in the cache while it is solved: the mapping reads one tensor from memory and
writes one, and its gradient reads two and writes one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from onmt_entmax.sparse.arguments import refuse_rows_of_minus_infinity
from onmt_entmax.sparse.backends.cpu_module import alphas_of, module, run
from onmt_entmax.sparse.backends.cpu_structs import Heads, Rows
from onmt_entmax.sparse.precision import working_type

# A support is kept for the backward pass if it has at most 1 / 32 of a row's scores. A column and a
# probability take 4 bytes each, so supports take at most a sixteenth of the memory of the scores.
_ROW_PER_SUPPORT = 32


def mapping(scores: Tensor, alpha: float | Tensor, logs: bool) -> Tensor:
    """Return probabilities ``(..., n)`` or their logarithms; see `reference.mapping`."""
    scores = scores.to(working_type(scores)).contiguous()
    out = torch.empty_like(scores)
    number, alphas = _number_or_alphas(alpha, scores)
    _run(module.map_rows, Rows(number, alphas, scores, out=out, logs=logs))
    return out


def solve(scores: Tensor, alpha: float | Tensor, out: Tensor) -> tuple[Tensor, Tensor]:
    """Write probabilities of rows, return shifted conjugates and maxima; see `backends.solve`."""
    shifted, maxima = scores.new_empty(len(scores)), scores.new_empty(len(scores))
    number, alphas = _number_or_alphas(alpha, scores)
    _run(module.map_rows, Rows(number, alphas, scores, out=out, shifted=shifted, maxima=maxima))
    return shifted, maxima


class _Solution(NamedTuple):
    """What :func:`conjugate` keeps of each row, from which :func:`scaled` writes probabilities.

    The fields are those of `Rows`, with the same shapes.

    Attributes:
        maxima: largest scores.
        threshold: thresholds and, above alpha 2, smallest probabilities.
        sizes: sizes of the supports.
        column: columns of the supports.
        value: probabilities of the supports.
    """

    maxima: Tensor
    threshold: Tensor
    sizes: Tensor
    column: Tensor
    value: Tensor

    @classmethod
    def empty(cls, scores: Tensor) -> _Solution:
        """Return memory for the solutions of scores ``(rows, n)``."""
        rows, room = len(scores), scores.shape[1] // _ROW_PER_SUPPORT
        return cls(
            maxima=scores.new_empty(rows),
            threshold=scores.new_empty(rows, 2, dtype=torch.float64),
            sizes=scores.new_empty(rows, dtype=torch.int64),
            column=scores.new_empty(rows, room, dtype=torch.int32),
            value=scores.new_empty(rows, room),
        )

    @property
    def room(self) -> int:
        """The largest size of a support that is kept."""
        return self.value.shape[1]


def conjugate(scores: Tensor, alpha: float | Tensor) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
    """Return shifted conjugates and maxima, and what :func:`scaled` needs: a `_Solution`.

    Args:
        scores: ``(rows, n)``, contiguous, float32 or float64.
        alpha: a number >= 1, or ``(rows, 1)``.

    Returns:
        Shifted conjugates and maxima, ``(rows,)`` each, see `backends.solve`; and the solution.
    """
    shifted, solution = scores.new_empty(len(scores)), _Solution.empty(scores)
    number, alphas = _number_or_alphas(alpha, scores)
    rows = Rows(number, alphas, scores, shifted=shifted, room=solution.room, **solution._asdict())
    _run(module.map_rows, rows)
    return shifted, solution.maxima, solution


def scaled(
    scores: Tensor, alpha: float | Tensor, kept: Sequence[Tensor], factors: Tensor
) -> Tensor:
    """Return the probabilities of rows, each row times its factor, ``(rows, n)``.

    Args:
        scores: the scores that :func:`conjugate` took, ``(rows, n)``.
        alpha: the alpha that it took.
        kept: its third result.
        factors: ``(rows,)``, in the type of the scores.
    """
    solution = _Solution(*kept)
    out, factor = torch.empty_like(scores), factors.contiguous()
    number, alphas = _number_or_alphas(alpha, scores)
    rows = Rows(
        number, alphas, scores, out=out, factor=factor, room=solution.room, **solution._asdict()
    )
    _run(module.scale_rows, rows)
    return out


def gradients(
    probabilities: Tensor, alpha: float | Tensor, gradient: Tensor, wants_alpha: bool = False
) -> tuple[Tensor, Tensor | None]:
    """Return the gradients with respect to the scores and to alpha.

    C++ has one function for this and for attention: a row is a head with one query, without mask,
    scale and dropout.

    Args:
        probabilities: ``(..., n)``, float32 or float64.
        alpha: a number, or ``(..., 1)``.
        gradient: upstream gradient with respect to the probabilities, ``(..., n)``.
        wants_alpha: whether to compute the gradient with respect to alpha.

    Returns:
        The gradients with respect to the scores, ``(..., n)`` in the type of the probabilities, and
        to the alpha of each row, ``(..., 1)`` in float64; the latter is None unless it is wanted.
    """
    probabilities = probabilities.contiguous()
    gradient = gradient.to(probabilities.dtype).contiguous()
    alphas = alphas_of(torch.as_tensor(alpha, dtype=torch.float64, device="cpu"), probabilities)
    out = torch.empty_like(probabilities)
    grad_alpha = None
    if wants_alpha:
        grad_alpha = probabilities.new_empty(*probabilities.shape[:-1], 1, dtype=torch.float64)
    heads = Heads(
        first=0,
        queries=1,
        alpha=alphas,
        heads=alphas.numel(),
        weights=probabilities,
        incoming=gradient,
        gradient=out,
        alpha_gradient=grad_alpha,
    )
    run(module.backward, probabilities, heads)
    return out, grad_alpha


def _number_or_alphas(alpha: float | Tensor, scores: Tensor) -> tuple[float, Tensor | None]:
    """Return the fields `alpha` and `alphas` of `Rows`.

    Args:
        alpha: a number, or ``(..., 1)``, an alpha for each row.
        scores: ``(..., n)``.
    """
    if isinstance(alpha, Tensor):
        # C++ reads no number then, but its struct has one: any will do.
        return 2.0, alphas_of(alpha, scores)
    return alpha, None


def _run(function: Callable[..., None], rows: Rows) -> None:
    """Run a C++ function on rows of scores.

    Raises:
        ValueError: if a row is -inf everywhere.
    """
    try:
        run(function, rows.scores, rows)
    except ValueError:
        refuse_rows_of_minus_infinity(rows.scores.amax(-1))
        raise
