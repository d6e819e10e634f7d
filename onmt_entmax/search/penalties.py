"""Ranking by more than probability: OpenNMT-py's length and coverage penalties."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from torch import Tensor


@dataclass(frozen=True)
class Penalties:
    """`score = log_prob / length penalty - beta * coverage penalty`, as OpenNMT-py computes it.

    Raises:
        ValueError: if a name is unknown or a number negative.
    """

    length_penalty: Literal["none", "wu", "avg"] = "none"
    """`wu`: ((5 + n) / 6) ** alpha (Wu et al. 2016, Eq. 14); `avg`: n. As in OpenNMT-py, n counts
    the start and end symbols too."""
    alpha: float = 0.0
    coverage_penalty: Literal["none", "wu", "summary"] = "none"
    """From the attention that each source position received in total, c: `wu`: the sum of
    -log(min(c, 1)) (Wu et al. 2016, Eq. 14), infinite where sparse attention leaves a position
    out; `summary`: the sum of max(c, 1) - 1 (Gehrmann et al. 2018)."""
    beta: float = 0.0

    def __post_init__(self) -> None:
        for name, known in (
            ("length_penalty", ("none", "wu", "avg")),
            ("coverage_penalty", ("none", "wu", "summary")),
        ):
            if getattr(self, name) not in known:
                raise ValueError(f"{name} must be {', '.join(known)}, got {getattr(self, name)!r}")
        for name in ("alpha", "beta"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ValueError(f"{name} must be a number from 0 up, got {getattr(self, name)}")

    @property
    def any(self) -> bool:
        """Whether scores differ from log-probabilities."""
        return self.length_penalty != "none" or self.covers

    @property
    def covers(self) -> bool:
        """Whether scores depend on attention."""
        return self.coverage_penalty != "none" and self.beta > 0

    def is_finite(self, max_length: int) -> bool:
        """Whether the length penalty of strings of up to `max_length` tokens is a finite number."""
        try:
            return math.isfinite(self.length(max_length))
        except OverflowError:
            return False

    def length(self, tokens: Any) -> Any:
        """The length penalty of strings of so many tokens, start and end symbols not counted.

        Args:
            tokens: a number, or an array of any shape; the result is of the same kind.
        """
        if self.length_penalty == "wu":
            return ((5 + tokens + 2) / 6) ** self.alpha
        return tokens + 2.0 if self.length_penalty == "avg" else tokens * 0 + 1.0

    def coverage(self, attention: Tensor) -> float:
        """The coverage penalty, at least 0, of attention (steps, source length without padding)."""
        covered = attention.double().sum(0)
        if self.coverage_penalty == "wu":
            return self.beta * float(-covered.clamp(max=1).log().sum())
        return self.beta * float((covered.clamp(min=1) - 1).sum())

    def score(self, log_prob: float, tokens: int, attention: Tensor | None) -> float:
        """The score of a finished hypothesis.

        Args:
            log_prob: of the hypothesis.
            tokens: its length without start and end symbols.
            attention: (steps, source length without padding); needed for a coverage penalty.
        """
        score = float(log_prob / self.length(tokens))
        if self.covers:
            assert attention is not None, "beam search asks the stepper for attention"
            score -= self.coverage(attention)
        return score

    def attainable(self, log_prob: Any, max_length: int) -> Any:
        """The most that a string can score which starts with a prefix of this log-probability.

        Only strings of at most `max_length` tokens are considered where there is a length penalty.
        Their log-probability is at most the prefix's, no length penalty is larger than that of the
        longest string, and no coverage penalty is negative. Division by a positive number keeps
        the order in floating point too, so no margin is needed.

        Args:
            log_prob: a number or an array; the result is of the same kind.
        """
        return log_prob / self.length(max_length)
