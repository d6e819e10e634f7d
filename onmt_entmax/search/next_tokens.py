"""The next tokens among which sampling draws, with their probabilities.

`allowed_tokens` returns those of each prefix. Sampling then narrows them: inside a forced prefix to
its next token (`only`), elsewhere to the most probable ones (`truncated`) and, at the length limit,
to the end of the output (`end_or_cut`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from onmt_entmax.nn.support import Distribution, Support, as_support
from onmt_entmax.search.arrays import Floats, Ints
from onmt_entmax.search.stepper import no_support

CUT = -1
"""A token that is in no vocabulary: the output ends here without its end symbol, at the length
limit or since no token is allowed."""


class NextTokens(NamedTuple):
    """Tokens that may come next after one prefix; none if its forced token is impossible."""

    token: Ints
    """`(options,)` ids, or `CUT`"""
    log_prob: Floats
    """`(options,)` log-probabilities, whose probabilities sum to 1"""

    def only(self, token: int) -> NextTokens:
        """Return one token with probability 1; no token if this one is impossible here."""
        possible = self.token[self.token == token]
        return NextTokens(possible, np.zeros(len(possible)))

    def truncated(self, topp: float, topk: int) -> NextTokens:
        """Return the most probable tokens, chosen by `topp` and then by `topk` as OpenNMT-py does.

        Args:
            topp: keep the fewest tokens whose probabilities reach this sum; 0: all.
            topk: keep this many of them, or more at a tie; 0 or less: all.
        """
        token, log_prob = self.token, self.log_prob
        if topp > 0:
            order = np.argsort(-log_prob, kind="stable")
            reached = np.cumsum(np.exp(log_prob[order]))
            order = order[: np.count_nonzero(reached < topp) + 1]
            token, log_prob = token[order], log_prob[order]
        if 0 < topk < len(token):
            kept = log_prob >= np.partition(log_prob, -topk)[-topk]
            token, log_prob = token[kept], log_prob[kept]
        if len(token) == len(self.token):
            return self
        return NextTokens(token, log_prob - np.logaddexp.reduce(log_prob))

    def end_or_cut(self, eos: int) -> NextTokens:
        """Return the end symbol, and `CUT` with the probability of all other tokens together.

        Either is left out if it is impossible.

        Args:
            eos: id of the end symbol.
        """
        is_end = self.token == eos
        symbols, log_probs = [], []
        for symbol, is_part in ((eos, is_end), (CUT, ~is_end)):
            if is_part.any():
                symbols.append(symbol)
                log_probs.append(np.logaddexp.reduce(self.log_prob[is_part]))
        return NextTokens(np.array(symbols, dtype=np.int64), np.array(log_probs))


def allowed_tokens(distribution: Distribution, excluded: Sequence[Ints]) -> list[NextTokens]:
    """Return what may follow each row of a step; `CUT` where nothing is allowed.

    Args:
        distribution: log-probabilities of the next tokens of all rows.
        excluded: for each row the token ids that may not follow. The probabilities of the others
            are divided by their sum.

    Raises:
        SearchError: if a row has nan, or no token of positive probability.
    """
    if not isinstance(distribution, Support):
        distribution = as_support(distribution.contiguous())
    support = distribution
    row, token = support.row.cpu().numpy(), support.token.cpu().numpy()
    log_prob = support.log_prob.double().cpu().numpy()
    if np.isnan(log_prob).any() or len(np.unique(row)) < support.rows:
        raise no_support()
    row_of_excluded = np.repeat(np.arange(len(excluded)), list(map(len, excluded)))
    # Pairs of a row and a token become single numbers, so that one `isin` compares all of them.
    never = row_of_excluded * support.vocabulary + np.concatenate(excluded)
    allowed = ~np.isin(row * support.vocabulary + token, never)
    row, token, log_prob = row[allowed], token[allowed], log_prob[allowed]
    ends = np.searchsorted(row, np.arange(support.rows + 1))
    return [
        NextTokens(token[begin:end], log_prob[begin:end] - np.logaddexp.reduce(log_prob[begin:end]))
        if begin < end
        else NextTokens(np.array([CUT]), np.zeros(1))
        for begin, end in pairwise(ends)
    ]
