"""The output layer in a search: log-probabilities of the next token, or their supports alone.

`search/model_stepper.py` prepares one for each model. With many rows, and supports that turn out to
be small, it computes exact scores only for tokens that bfloat16 products do not rule out (see
`bf16_filter`). Whether it does so depends on the rows of the step alone, and not on earlier steps,
so that the outputs for a sentence do not depend on what was searched before.
"""

from __future__ import annotations

import torch
from torch import Tensor

from onmt_entmax.nn.bf16_filter import Bfloat16Filter
from onmt_entmax.nn.prepared_weight import PreparedWeight
from onmt_entmax.nn.support import Distribution, Support, join_supports, support_if_sparse
from onmt_entmax.sparse import log_entmax

# Scores in a chunk of rows: below 32 MB, the allocator reuses the memory.
_LARGEST_CHUNK = 1 << 22
# The fewest rows of a step whose tokens may be filtered by bfloat16 products.
_LEAST_ROWS_TO_FILTER = 128
# The first rows of such a step, which are not filtered: their supports tell whether filtering pays.
_ROWS_TO_TRY = 32
# The most tokens that the supports of a group have on average if the next group is filtered.
# With 18,000 tokens and 320 rows, the layer then takes 0.69 to 0.74 of the time with supports of 2
# to 5 tokens, and 0.95 to 1.05 with 20 and more, where filtering all rows would take 1.4 to 1.55.
_SMALL_SUPPORT = 6


class PreparedOutput:
    """An output layer prepared for the steps of a search; later changes of the weights are ignored.

    Args:
        weight: ``(vocabulary, hidden)``.
        bias: ``(vocabulary,)``.
        alpha: a number >= 1.
    """

    @torch.inference_mode()
    def __init__(self, weight: Tensor, bias: Tensor, alpha: float) -> None:
        self._alpha = alpha
        self._rows_of_chunk = max(_LARGEST_CHUNK // max(len(weight), 1), 1)
        self._scores = PreparedWeight(weight, bias)
        self._filter = Bfloat16Filter.if_faster(weight, bias, alpha)

    @torch.inference_mode()
    def __call__(self, hidden: Tensor) -> Distribution:
        """Return log-probabilities of the next token given hidden ``(rows, hidden)``.

        The result is a `Support` if alpha is above 1 and the supports are small, else a tensor.
        """
        parts: list[Distribution] = []
        for rows in self._groups(hidden):
            part: Distribution | None = None
            if self._filter is not None and parts and _has_small_supports(parts[-1]):
                part = self._filter.supports(rows)
            parts.append(self._distribution(rows) if part is None else part)
        supports = [part for part in parts if isinstance(part, Support)]
        if len(supports) == len(parts):
            return join_supports(supports)
        return torch.cat([part.dense() if isinstance(part, Support) else part for part in parts])

    def _groups(self, hidden: Tensor) -> list[Tensor]:
        """Return groups of rows whose scores are computed together."""
        if self._filter is not None and len(hidden) >= _LEAST_ROWS_TO_FILTER:
            return [hidden[:_ROWS_TO_TRY], *hidden[_ROWS_TO_TRY:].split(self._rows_of_chunk)]
        return list(hidden.split(self._rows_of_chunk))

    def _distribution(self, rows: Tensor) -> Distribution:
        """Return the log-probabilities of rows from all scores."""
        log_probs = log_entmax(self._scores(rows), self._alpha)
        return support_if_sparse(log_probs) if self._alpha > 1 else log_probs


def _has_small_supports(part: Distribution) -> bool:
    """Return whether the next group of rows should be filtered after this one."""
    return isinstance(part, Support) and len(part.row) <= _SMALL_SUPPORT * part.rows
