"""The tokens of positive probability: a search needs only these, not whole distributions."""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from onmt_entmax.nn.sparse_entries import nonzero


class Support(NamedTuple):
    """The tokens of positive probability of some rows, with their log-probabilities."""

    rows: int
    """Number of rows, those without entries included."""
    vocabulary: int
    """Number of tokens."""
    row: Tensor
    """``(entries,)`` int64, ascending."""
    token: Tensor
    """``(entries,)`` int64, ascending within a row."""
    log_prob: Tensor
    """``(entries,)``, finite if the scores of the row are."""

    def dense(self) -> Tensor:
        """Return log-probabilities ``(rows, vocabulary)``, -inf outside the support."""
        log_probs = self.log_prob.new_full((self.rows, self.vocabulary), -torch.inf)
        log_probs.view(-1)[self.row * self.vocabulary + self.token] = self.log_prob
        return log_probs


Distribution = Tensor | Support
"""Log-probabilities of the next token: a dense tensor ``(rows, vocabulary)``, or a `Support`."""


def as_support(log_probs: Tensor) -> Support:
    """Return the entries of contiguous log-probabilities ``(rows, vocabulary)`` that are not -inf.

    Entries that are nan belong to them.
    """
    support = support_if_sparse(log_probs, max_density=1.0)
    assert isinstance(support, Support)
    return support


def support_if_sparse(log_probs: Tensor, max_density: float = 1 / 8) -> Distribution:
    """Return the support of contiguous log-probabilities, or these themselves if it is large.

    Args:
        log_probs: ``(rows, vocabulary)``.
        max_density: the largest share of all entries for which the support is returned. If it has
            more, whole rows are quicker to search.

    Returns:
        The support, on the CPU, or `log_probs`.
    """
    rows, vocabulary = log_probs.shape
    # Comparing into floats is several times faster than into booleans.
    is_inside = torch.ne(log_probs, -torch.inf, out=torch.empty_like(log_probs))
    position = nonzero(is_inside, max_density)
    if position is None:
        return log_probs
    value, position = log_probs.view(-1)[position].cpu(), position.cpu()
    row = position // max(vocabulary, 1)
    return Support(rows, vocabulary, row, position - row * vocabulary, value)


def join_supports(parts: Sequence[Support]) -> Support:
    """Concatenate the rows of one or more supports."""
    *begins, rows = itertools.accumulate((part.rows for part in parts), initial=0)
    return Support(
        rows=rows,
        vocabulary=parts[0].vocabulary,
        row=torch.cat([part.row + begin for part, begin in zip(parts, begins, strict=True)]),
        token=torch.cat([part.token for part in parts]),
        log_prob=torch.cat([part.log_prob for part in parts]),
    )
