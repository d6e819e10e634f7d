"""The tokens of positive probability of some rows: found in scores, sent from a GPU, joined."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from onmt_entmax.sparse.backends import backend_for
from onmt_entmax.sparse.candidates import nonzero
from onmt_entmax.sparse.solvers import has_power_form, margins

# From this many scores on, finding the support costs less than computing all logarithms.
_LEAST_SCORES = 1 << 16
# The part of a row up to which its support is listed; larger ones are quicker as whole rows.
_MOST_SUPPORT = 1 / 8
# Tokens of each row that a GPU sends to a search at once; further ones are asked for.
_SENT = 16


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
    """``(entries,)``, finite unless the row's scores are not."""

    def dense(self) -> Tensor:
        """Return log-probabilities ``(rows, vocabulary)``, -inf outside the support."""
        whole = self.log_prob.new_full((self.rows, self.vocabulary), -torch.inf)
        whole.view(-1)[self.row * self.vocabulary + self.token] = self.log_prob
        return whole


Distribution = Tensor | Support
"""Log-probabilities of the next token: all ``(rows, vocabulary)``, or those of the support."""


def find_support(scores: Tensor, alpha: float) -> Support | None:
    """Find the support of rows of scores, with the log-probabilities of `log_entmax`.

    Args:
        scores: ``(rows, vocabulary)`` float32 or float64, contiguous; without autograd.
        alpha: a number > 1.

    Returns:
        None if all logarithms would be quicker: the scores are few or a support is large.
    """
    if scores.numel() < _LEAST_SCORES:
        return None
    solved = backend_for(scores, alpha).conjugate(scores, alpha, sparse_part=_MOST_SUPPORT)
    if solved.dense:
        return None
    position, row, probability = solved.entries
    if has_power_form(alpha):
        # From the margins, since small probabilities have few digits.
        given = scores.view(-1)[position], alpha, solved.maxima[row, 0], solved.threshold[row, 0]
        values = margins(*given).mul_(alpha - 1).log_().div_(alpha - 1)
    else:
        values = probability.log()
    rows, vocabulary = scores.shape
    token = position - row * vocabulary
    return Support(rows, vocabulary, row, token, values.to(scores.dtype))


def as_support(log_probs: Tensor) -> Support:
    """Return the entries of contiguous log-probabilities that are not -inf; nan is kept."""
    rows, vocabulary = log_probs.shape
    position = nonzero(log_probs != -torch.inf)
    row = position // vocabulary
    return Support(rows, vocabulary, row, position - row * vocabulary, log_probs.view(-1)[position])


def sent_support(log_probs: Tensor) -> Distribution:
    """Return the support of contiguous log-probabilities on the CPU, as a rule by one transfer.

    Returns:
        The log-probabilities themselves if many rows have large supports.
    """
    rows, vocabulary = log_probs.shape
    room = min(_SENT, vocabulary)
    best, token = log_probs.topk(room)
    exact = torch.promote_types(best.dtype, torch.float32)  # half types do not hold all tokens
    best, token = torch.stack([best.to(exact), token.to(exact)]).cpu()
    entries = best != -torch.inf  # nan is kept
    wide = entries[:, -1].nonzero().squeeze(1) if room < vocabulary else token.new_empty(0).long()
    if _SENT * len(wide) > rows:
        return log_probs
    entries[wide] = False
    row, value, token = entries.nonzero()[:, 0], best[entries], token[entries].long()
    if len(wide):
        more = as_support(log_probs[wide.to(log_probs.device)])
        row = torch.cat([row, wide[more.row.cpu()]])
        token, value = torch.cat([token, more.token.cpu()]), torch.cat([value, more.log_prob.cpu()])
    order = (row * vocabulary + token).argsort()
    return Support(rows, vocabulary, row[order], token[order], value[order])


def join_supports(parts: Sequence[Support]) -> Support:
    """Concatenate the rows of one or more supports."""
    if len(parts) == 1:
        return parts[0]
    begins = itertools.accumulate((part.rows for part in parts), initial=0)
    row = torch.cat([part.row + begin for part, begin in zip(parts, begins, strict=False)])
    token, log_prob = torch.cat([x.token for x in parts]), torch.cat([x.log_prob for x in parts])
    return Support(sum(x.rows for x in parts), parts[0].vocabulary, row, token, log_prob)
