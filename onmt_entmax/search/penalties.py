"""Scores of hypotheses: log-probability, length and coverage penalties, and length reward."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from onmt_entmax.config import Checked, Equals, IsOn, option
from onmt_entmax.rules import number, one_of, positive
from onmt_entmax.search.arrays import Floats, Ints

_TOPIC = "Outputs"

Amount = float | Floats
"""A log-probability or score, or an array `(n,)` with one for each hypothesis."""
Count = int | Ints
"""A number of tokens, or an array `(n,)` with one for each hypothesis."""


@dataclass(frozen=True)
class Penalties(Checked):
    """What a score is: log-probability, penalties and reward.

    As OpenNMT-py computes it:

        score = log_prob / length penalty - beta * coverage penalty

    or, with the bounded length reward of Huang, Zhao and Ma (2017) and Yang, Huang and Ma (2018):

        score = log_prob + length_reward * min(n, length_ratio * source length)
                         - beta * coverage penalty

    Here n is the number of tokens with the end symbol, and the source length is in tokens as the
    model reads them. In the fields below m is the number of tokens with the start symbol and the
    end symbol, as OpenNMT-py counts them, and c, for each source position, the sum over the steps
    of the attention to it.
    """

    length_penalty: str = option(
        "none",
        one_of("none", "wu", "avg"),
        help="Length penalty of the score.",
        topic=_TOPIC,
    )
    """`wu`: ((5 + m) / 6) ** alpha (Wu et al. 2016, Eq. 14); `avg`: m."""
    alpha: float = option(
        0.0,
        number(0, 1000),
        help="Strength of the penalty.",
        topic=_TOPIC,
        needs=Equals("length_penalty", "wu"),
    )
    coverage_penalty: str = option(
        "none",
        one_of("none", "wu", "summary"),
        help="Coverage penalty of the score.",
        topic=_TOPIC,
        needs=IsOn("beta"),
    )
    """`wu`: the sum of -log(min(c, 1)) over source positions (Wu et al. 2016, Eq. 14), infinite if
    sparse attention leaves a position out; `summary`: the sum of max(c, 1) - 1 (Gehrmann et al.
    2018)."""
    beta: float = option(
        0.0,
        number(0, 1000),
        help="Weight of coverage_penalty.",
        topic=_TOPIC,
        needs=IsOn("coverage_penalty", off="none"),
    )
    length_reward: float = option(
        0.0,
        number(0, 1000),
        help="Added to the score for each output token, the end symbol too.",
        topic=_TOPIC,
    )
    length_ratio: float = option(
        1.2,
        positive(1000),
        help="The reward is for at most this many output tokens per source token.",
        topic=_TOPIC,
        needs=IsOn("length_reward"),
    )

    def misfits(self) -> Iterator[tuple[str, str]]:
        """Yield the name of each value that does not fit others, and why."""
        if self.length_reward and self.length_penalty != "none":
            yield "length_reward", "does not go with length_penalty: choose one of them"

    @property
    def change_scores(self) -> bool:
        """Whether scores differ from log-probabilities."""
        return self.length_penalty != "none" or self.length_reward > 0 or self.needs_attention

    @property
    def needs_attention(self) -> bool:
        """Whether scores depend on the attention of hypotheses."""
        return self.coverage_penalty != "none" and self.beta > 0

    def length_penalty_of(self, tokens: float) -> float:
        """Return the length penalty of a hypothesis; 1 without one.

        Args:
            tokens: number of its tokens, without start and end symbols.
        """
        m = tokens + 2.0
        if self.length_penalty == "wu":
            return ((5 + m) / 6) ** self.alpha
        return m if self.length_penalty == "avg" else 1.0

    def score_without_coverage(
        self, log_prob: Amount, tokens: float, source_length: Count
    ) -> Amount:
        """Return scores with the length penalty or reward, but no coverage penalty.

        Args:
            log_prob: a number or an array; the result is of the same kind.
            tokens: length without start and end symbols.
            source_length: length of the source in tokens; only read with a reward.
        """
        if not self.length_reward:
            return log_prob / self.length_penalty_of(tokens)
        longest = self.length_ratio * source_length
        return log_prob + self.length_reward * np.minimum(tokens + 1, longest)

    def score(
        self, log_prob: float, tokens: int, attention: Tensor | None, source_length: int = 0
    ) -> float:
        """Return the score of a finished hypothesis.

        Args:
            log_prob: the log-probability of the hypothesis.
            tokens: number of its tokens, without start and end symbols.
            attention: `(steps, source length)`, without padding; needed for a coverage penalty.
            source_length: length of the source in tokens; needed for a length reward.
        """
        score = float(self.score_without_coverage(log_prob, tokens, source_length))
        if not self.needs_attention:
            return score
        assert attention is not None, "a coverage penalty needs attention"
        covered = attention.double().sum(0)  # (source length,)
        if self.coverage_penalty == "wu":
            return score + self.beta * float(covered.clamp(max=1).log().sum())
        return score - self.beta * float((covered.clamp(min=1) - 1).sum())

    def attainable(self, log_prob: Amount, max_length: int, source_length: Count) -> Amount:
        """Return the best score of any sequence that starts with a prefix of this log-probability.

        Proofs rest on it: a prefix whose `attainable` is below a score need not be followed.

        A sequence is at most as probable as its prefix, and log-probabilities are at most 0. No
        coverage penalty is negative. With a length penalty, only sequences of at most `max_length`
        tokens count, and division by the penalty of the longest gives the highest score. No length
        reward exceeds that of an endless sequence. Division by a positive number and addition keep
        the order in floating point too, so no margin is needed.

        Args:
            log_prob: a number or an array; the result is of the same kind.
            max_length: longest sequence, without its end symbol.
            source_length: as for `score_without_coverage`.
        """
        longest = math.inf if self.length_reward else max_length
        return self.score_without_coverage(log_prob, longest, source_length)
