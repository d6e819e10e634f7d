"""Entmax of rows in C++, for float32 and float64 on a CPU.

``csrc/native_threshold.h`` explains the method, ``csrc/native_anchor.h`` that above alpha 2. Each
row stays in the cache. The mapping reads the scores once and writes once, its gradient reads twice
and writes once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from onmt_entmax.sparse.arguments import refuse_rows_without_answer
from onmt_entmax.sparse.backends.cpu_module import alphas_of, module, run
from onmt_entmax.sparse.backends.cpu_structs import Heads, Rows
from onmt_entmax.sparse.precision import working_type

# A support is kept if it has at most 1 / 32 of a row's scores.
_ROW_PER_SUPPORT = 32


def mapping(scores: Tensor, alpha: float | Tensor, logs: bool) -> Tensor:
    """Return probabilities ``(..., n)`` or their logarithms; see `reference.mapping`."""
    scores = scores.to(working_type(scores)).contiguous()
    out = torch.empty_like(scores)
    _run(module.map_rows, Rows(scores=scores, out=out, logs=logs, **_alpha_fields(alpha, scores)))
    return out


def solve(scores: Tensor, alpha: float | Tensor, out: Tensor) -> tuple[Tensor, Tensor]:
    """Write probabilities of rows, return shifted conjugates and maxima; see `backends.solve`."""
    shifted, maxima = scores.new_empty(len(scores)), scores.new_empty(len(scores))
    rows = Rows(
        scores=scores, out=out, shifted=shifted, maxima=maxima, **_alpha_fields(alpha, scores)
    )
    _run(module.map_rows, rows)
    return shifted, maxima


class _Solution(NamedTuple):
    """What :func:`conjugate` knows of the probabilities of rows, from which they can be written.

    Attributes:
        maxima: ``(rows,)``.
        threshold: see `Rows`, as for the others.
        sizes: of the supports.
        column: of the scores in a support.
        value: the scores in a support.
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
    """Return shifted conjugates, maxima, and what :func:`scaled` needs: thresholds and supports."""
    shifted, solution = scores.new_empty(len(scores)), _Solution.empty(scores)
    rows = Rows(
        scores=scores,
        shifted=shifted,
        room=solution.room,
        **solution._asdict(),
        **_alpha_fields(alpha, scores),
    )
    _run(module.map_rows, rows)
    return shifted, solution.maxima, solution


def scaled(
    scores: Tensor, alpha: float | Tensor, kept: Sequence[Tensor], factors: Tensor
) -> Tensor:
    """Return the probabilities of rows times ``factors`` ``(rows,)``; see :func:`conjugate`."""
    solution = _Solution(*kept)
    out, factor = torch.empty_like(scores), factors.contiguous()
    rows = Rows(
        scores=scores,
        out=out,
        room=solution.room,
        factor=factor,
        **solution._asdict(),
        **_alpha_fields(alpha, scores),
    )
    _run(module.scale_rows, rows)
    return out


def gradients(
    probabilities: Tensor, alpha: float | Tensor, gradient: Tensor, of_alpha: bool = False
) -> tuple[Tensor, Tensor | None]:
    """Return the gradients in the scores, and with ``of_alpha`` in each row's alpha ``(..., 1)``.

    C++ has one function for this and for attention: a row is a head with one query, without mask,
    scale and dropout.

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


def _alpha_fields(alpha: float | Tensor, scores: Tensor) -> dict[str, Any]:
    """Return the fields of `Rows` for one alpha, or for that of each row of scores."""
    if isinstance(alpha, Tensor):
        # C++ does not read the number, but it must be one.
        return {"alpha": 2.0, "alphas": alphas_of(alpha, scores)}
    return {"alpha": alpha, "alphas": None}


def _run(function: Callable[..., None], rows: Rows) -> None:
    """Run a C++ function on rows of scores.

    Raises:
        ValueError: if a row is -inf everywhere.
    """
    try:
        run(function, rows.scores, rows)
    except ValueError:
        refuse_rows_without_answer(rows.scores.amax(-1))
        raise
