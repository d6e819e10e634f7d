"""The output layer in a search: log-probabilities of the next token, or their supports alone.

`search/model_stepper.py` prepares one for each model. If a step has many rows, and their supports
turn out to be small, exact scores are computed only for tokens that bfloat16 products do not rule
out (see `bf16_filter`). Whether this is done depends on the rows of the step alone, not on earlier
steps, so that the outputs for a sentence do not depend on earlier searches.
"""

from __future__ import annotations

import torch
from torch import Tensor

from onmt_entmax.nn.bf16_filter import Bfloat16Filter
from onmt_entmax.nn.prepared_weight import PreparedWeight
from onmt_entmax.nn.support import Distribution, Support, join_supports, support_if_sparse
from onmt_entmax.sparse import log_entmax

# The most scores in a chunk of rows: 16 MB in float32. Below 32 MB, the allocator reuses memory.
_LARGEST_CHUNK = 1 << 22
# The fewest rows of a step whose tokens may be filtered by bfloat16 products.
_LEAST_ROWS_TO_FILTER = 128
# The first group of such a step has this many rows and is not filtered: its supports tell whether
# filtering the next group pays.
_ROWS_TO_TRY = 32
# The next group is filtered if the supports of a group have at most this many tokens on average.
# With 18,000 tokens and 320 rows, the layer then takes 0.69 to 0.74 of the time for supports of 2
# to 5 tokens, and 0.95 to 1.05 for supports of 20 and more, where filtering all rows would take 1.4
# to 1.55.
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
        """Return groups of rows ``(group, hidden)`` whose scores are computed together."""
        if self._filter is not None and len(hidden) >= _LEAST_ROWS_TO_FILTER:
            return [hidden[:_ROWS_TO_TRY], *hidden[_ROWS_TO_TRY:].split(self._rows_of_chunk)]
        return list(hidden.split(self._rows_of_chunk))

    def _distribution(self, rows: Tensor) -> Distribution:
        """Return the distributions of rows ``(group, hidden)`` from all scores."""
        log_probs = log_entmax(self._scores(rows), self._alpha)
        return support_if_sparse(log_probs) if self._alpha > 1 else log_probs


def _has_small_supports(part: Distribution) -> bool:
    """Return whether the next group of rows should be filtered after this one."""
    return isinstance(part, Support) and len(part.row) <= _SMALL_SUPPORT * part.rows
