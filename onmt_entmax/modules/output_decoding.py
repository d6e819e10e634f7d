"""The output layer in a search: log-probabilities of what is in the support, and of nothing else.

A trained model leaves a few tokens of tens of thousands, and a search asks for no others. So the
logarithms of the rest are never made: the scores of some rows are searched for what lies above a
lower bound of the threshold, and given up.
"""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from onmt_entmax.mappings import log_entmax
from onmt_entmax.mappings.conjugate import WHOLE, row_groups
from onmt_entmax.mappings.selection import Candidates, lower_bound, nonzero, select
from onmt_entmax.mappings.threshold import has_power_form, solve_log, solve_power
from onmt_entmax.modules.output_screen import Screen, pays
from onmt_entmax.modules.recurrence.products import PreparedWeight

# From so many scores on, looking for the support costs less than all logarithms. Scores that are
# held at once: less than 32 MB that are given up are used again for the next ones.
# For so many groups of rows no screen is tried after one that found too much.
_LEAST = 1 << 16
_SCORES = 1 << 22
_PAUSE = 32


class Support(NamedTuple):
    """The tokens of positive probability of some rows."""

    rows: int
    """How many rows there are, those without entries included."""
    vocabulary: int
    """How many tokens there are."""
    row: Tensor
    """(entries,) int64, ascending."""
    token: Tensor
    """(entries,) int64, ascending within a row."""
    log_prob: Tensor
    """(entries,) finite, but for rows whose scores are not"""

    def dense(self) -> Tensor:
        """Log-probabilities (rows, vocabulary), -inf outside the support."""
        whole = self.log_prob.new_full((self.rows, self.vocabulary), -torch.inf)
        whole.view(-1)[self.row * self.vocabulary + self.token] = self.log_prob
        return whole


Distribution = Tensor | Support
"""Log-probabilities of the next token, all (rows, vocabulary) or those of the support."""


def find_support(scores: Tensor, alpha: float) -> Support | None:
    """The support of rows of scores, with log-probabilities as those of `log_entmax`.

    Membership and logarithm come from how far a score is above the threshold. The threshold is
    found on fewer scores than `log_entmax` looks at, so its last bits may differ.

    Args:
        scores: (rows, vocabulary) float32 or float64, contiguous; no autograd.
        alpha: a number > 1.

    Returns:
        None if that is not quicker than all logarithms: of few scores, or a large support.
    """
    if scores.numel() < _LEAST or not (has_power_form(alpha) or alpha > 2):
        return None
    bound = lower_bound(scores, alpha)
    found = None if bound is None else select(scores, *bound)
    if bound is None or found is None:
        return None
    return _solved(found, alpha, scores.shape[1], bound[2])


def _solved(
    found: Candidates, alpha: float, vocabulary: int, start: Tensor | None = None
) -> Support:
    """The support of rows of which the candidates are known; ``start`` as for `solve_power`."""
    if has_power_form(alpha):
        margin = solve_power(found.scores, alpha, start).margin
        values = margin.view(-1)[found.slot].mul_(alpha - 1).log_().div_(alpha - 1)
    else:
        logs = solve_log(found.scores, alpha).log_probabilities
        values = logs.view(-1)[found.slot].to(found.scores.dtype)
    inside = (values != -torch.inf).nonzero().squeeze(1)
    position, row, values = (x[inside] for x in (found.position, found.row, values))
    return Support(len(found.scores), vocabulary, row, position - row * vocabulary, values)


def dense_log_probs(scores: Tensor, alpha: float) -> Tensor:
    """As `log_entmax`, without PyTorch's logarithm of 0: on a CPU it is ten times slower than that
    of other numbers, and zeros are nearly all there is.

    Args:
        scores: (rows, vocabulary); no autograd.
        alpha: a number >= 1.
    """
    if not has_power_form(alpha):
        return log_entmax(scores, alpha)
    rows, vocabulary = scores.shape
    if scores.numel() > WHOLE and rows > 1:  # group by group, in the cache
        whole = torch.empty_like(scores)
        for begin, end in row_groups(0, rows, vocabulary, WHOLE):
            whole[begin:end] = dense_log_probs(scores[begin:end], alpha)
        return whole
    margin = solve_power(scores, alpha).margin.mul_(alpha - 1)
    outside = margin == 0
    logs = margin.masked_fill_(outside, 1.0).log_().div_(alpha - 1)
    return logs.masked_fill_(outside, -torch.inf)


def as_support(log_probs: Tensor) -> Support:
    """What is not -inf in log-probabilities (rows, vocabulary), contiguous; nan is not -inf."""
    rows, vocabulary = log_probs.shape
    position = nonzero(log_probs != -torch.inf)
    row = position // vocabulary
    return Support(rows, vocabulary, row, position - row * vocabulary, log_probs.view(-1)[position])


def join(parts: Sequence[Support]) -> Support:
    """The support of the rows of one or more, one after the other."""
    if len(parts) == 1:
        return parts[0]
    begins = itertools.accumulate((part.rows for part in parts), initial=0)
    row = torch.cat([part.row + begin for part, begin in zip(parts, begins, strict=False)])
    token, log_prob = torch.cat([x.token for x in parts]), torch.cat([x.log_prob for x in parts])
    return Support(sum(x.rows for x in parts), parts[0].vocabulary, row, token, log_prob)


def _log_softmax(scores: Tensor, out: Tensor) -> None:
    """As `log_entmax` with alpha 1, into ``out``."""
    torch.log_softmax(scores, -1, out=out)
    if bool(out[:, 0].isnan().any()):
        log_entmax(scores, 1)  # refuses rows without an answer


class PreparedOutput:
    """An output layer for many steps of a search, with the weights of the moment it was made.

    Args:
        weight: (vocabulary, hidden).
        bias: (vocabulary,).
        alpha: a number >= 1.
    """

    @torch.inference_mode()
    def __init__(self, weight: Tensor, bias: Tensor, alpha: float) -> None:
        self._vocabulary, self._alpha = len(weight), alpha
        self._scores = PreparedWeight(weight, bias)
        self._looks = weight.device.type == "cpu" and alpha > 1
        self._screen = Screen(weight, bias, alpha) if pays(weight, alpha) else None
        self._pause = 0

    def begin(self) -> None:
        """Forget what was seen: answers that were screened are rounded differently, and those from
        here on are not to depend, in their last digits, on those before."""
        self._pause = 0

    @torch.inference_mode()
    def __call__(self, hidden: Tensor) -> Distribution:
        """Log-probabilities of the next token.

        Args:
            hidden: (rows, hidden).

        Returns:
            A `Support` where that is found sooner, else the log-probabilities of all tokens.
        """
        groups = list(row_groups(0, len(hidden), self._vocabulary, _SCORES))
        if self._alpha == 1 and len(groups) > 1:
            whole = hidden.new_empty(len(hidden), self._vocabulary)
            for begin, end in groups:
                _log_softmax(self._scores(hidden[begin:end]), whole[begin:end])
            return whole
        if not self._looks:
            return dense_log_probs(self._scores(hidden), self._alpha)
        if not groups:
            return as_support(self._scores(hidden))
        parts = [self._of(hidden[begin:end]) for begin, end in groups]
        supports = [part for part in parts if isinstance(part, Support)]
        if len(supports) == len(parts):
            return join(supports)
        rows = [part.dense() if isinstance(part, Support) else part for part in parts]
        return rows[0] if len(rows) == 1 else torch.cat(rows)

    def _of(self, hidden: Tensor) -> Distribution:
        """As `__call__`, of a few rows."""
        if self._screen is not None and self._pause == 0:
            candidates = self._screen.candidates(hidden)
            if candidates is not None:
                return _solved(candidates, self._alpha, self._vocabulary)
            self._pause = _PAUSE
        self._pause = max(self._pause - 1, 0)
        scores = self._scores(hidden)
        found = find_support(scores, self._alpha)
        return dense_log_probs(scores, self._alpha) if found is None else found
