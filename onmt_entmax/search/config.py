"""Options of a search: penalties, beam search, budget of an exact search, and the task."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal, get_args, get_type_hints

from torch import Tensor

from onmt_entmax.search.constraints import Constraints
from onmt_entmax.search.mbr import UTILITIES, Utility
from onmt_entmax.search.sampling import Sampling


@dataclass(frozen=True)
class Penalties:
    """`score = log_prob / length penalty - beta * coverage penalty`, as OpenNMT-py computes it.

    Raises:
        ValueError: if a name is unknown or a number negative.
    """

    length_penalty: Literal["none", "wu", "avg"] = "none"
    """`wu`: ((5 + n) / 6) ** alpha (Wu et al. 2016, Eq. 14); `avg`: n. As in OpenNMT-py, n includes
    the start and end symbols."""
    alpha: float = 0.0
    coverage_penalty: Literal["none", "wu", "summary"] = "none"
    """With c the total attention that a source position received: `wu`: the sum of -log(min(c, 1))
    (Wu et al. 2016, Eq. 14), infinite if sparse attention leaves a position out; `summary`: the sum
    of max(c, 1) - 1 (Gehrmann et al. 2018)."""
    beta: float = 0.0

    def __post_init__(self) -> None:
        for name in ("length_penalty", "coverage_penalty"):
            known = get_args(get_type_hints(Penalties)[name])
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
        """Tell whether the length penalty of up to `max_length` tokens is a finite number."""
        try:
            return math.isfinite(self.length(max_length))
        except OverflowError:
            return False

    def length(self, tokens: Any) -> Any:
        """Return the length penalty.

        Args:
            tokens: length without start and end symbols, a number or an array; the result is of the
                same kind.
        """
        if self.length_penalty == "wu":
            return ((5 + tokens + 2) / 6) ** self.alpha
        return tokens + 2.0 if self.length_penalty == "avg" else tokens * 0 + 1.0

    def score(self, log_prob: float, tokens: int, attention: Tensor | None) -> float:
        """Return the score of a finished hypothesis.

        Args:
            log_prob: of the hypothesis.
            tokens: its length without start and end symbols.
            attention: `(steps, source length without padding)`; needed for a coverage penalty.
        """
        score = float(log_prob / self.length(tokens))
        if self.covers:
            assert attention is not None, "a coverage penalty needs attention"
            covered = attention.double().sum(0)
            if self.coverage_penalty == "wu":
                score += self.beta * float(covered.clamp(max=1).log().sum())
            else:
                score -= self.beta * float((covered.clamp(min=1) - 1).sum())
        return score

    def attainable(self, log_prob: Any, max_length: int) -> Any:
        """Return the best score of any sequence that starts with a prefix of this log-probability.

        With a length penalty, only sequences of at most `max_length` tokens count. Their
        log-probability is at most the prefix's, no length penalty exceeds that of the longest, and
        no coverage penalty is negative. Division by a positive number keeps the order in floating
        point too, so no margin is needed.

        Args:
            log_prob: a number or an array; the result is of the same kind.
            max_length: longest sequence, without its end symbol.
        """
        return log_prob / self.length(max_length)


Stop = Literal["exhaustive", "optimal", "first"]


@dataclass(frozen=True)
class SearchConfig:
    """How to search; options that OpenNMT-py has keep its names.

    Raises:
        ValueError: if a value is out of range.
    """

    beam_size: int = 5
    """Live prefixes kept for each sentence."""
    n_best: int = 1
    """Hypotheses returned for each sentence; 0 returns all that finished."""
    max_length: int = 100
    """Longest sequence, without its end symbol; longer prefixes are cut, and the certificate counts
    them."""
    stop: Stop = "exhaustive"
    """When a sentence is done. `exhaustive`: when no prefix is alive, or the beam has overflowed
    (the support cannot be exhausted any more) and `optimal` holds. `optimal`: when no live prefix
    is more probable than the n-th best finished hypothesis (with penalties: can score more at any
    length). `first`, as in OpenNMT-py: when no live prefix is more probable than the best finished
    hypothesis (with penalties: scores more now) and max(beam_size, n_best) have finished. Unless
    the support may still be exhausted, prefixes that cannot beat the n-th best are dropped."""
    constraints: Constraints = field(default_factory=Constraints)
    """Which sequences are allowed."""
    penalties: Penalties = field(default_factory=Penalties)
    """How hypotheses are scored."""
    all_found: bool = False
    """Whether to return all that finished, though only the `n_best` are searched for."""

    def __post_init__(self) -> None:
        for name, least in (("beam_size", 1), ("n_best", 0), ("max_length", 0)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be at least {least}, got {getattr(self, name)}")
        if self.stop not in get_args(Stop):
            raise ValueError(f"stop must be exhaustive, optimal or first, got {self.stop!r}")
        if not self.penalties.is_finite(self.max_length):
            raise ValueError(
                f"alpha {self.penalties.alpha:g} is too large: the length penalty of "
                f"max_length {self.max_length} is not a number any more"
            )


@dataclass(frozen=True)
class Budget:
    """Limits of an exact search, which then returns the best found and a bound.

    Raises:
        ValueError: if a number is not positive.
    """

    expansions: int = 10_000
    """Prefixes computed, for one sentence."""
    states: int = 20_000
    """Prefixes whose decoder state is kept: a few kilobytes each for a recurrent decoder."""
    rows: int = 64
    """Prefixes computed together."""

    def __post_init__(self) -> None:
        for name in ("expansions", "states", "rows"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")


Method = Literal["beam", "exact", "enumerate"]


@dataclass(frozen=True)
class SearchTask:
    """What to search for, with tokens named by their text: the vocabulary is not needed yet."""

    config: SearchConfig = field(default_factory=SearchConfig)
    """Its constraints may name tokens by id; the fields below are added to them."""
    method: Method = "beam"
    """`exact`: a beam search (whose `stop` must not be `first`), then an exact search of sentences
    whose `n_best` are not proven; `enumerate`: list the support from the most probable sequence
    down."""
    budget: Budget = field(default_factory=Budget)
    """Limits of `exact` and `enumerate`, for one sentence."""
    mass: float = 1.0
    """Total probability at which `enumerate` may stop."""
    verify: bool = False
    """Whether to recompute certified sentences, one at a time in float64."""
    ban_unknown: bool = False
    """Whether to ban `<unk>`."""
    ignore_when_blocking: tuple[str, ...] = ()
    """Tokens whose n-grams may repeat in spite of `block_ngram_repeat`."""
    regex: str | None = None
    """What every output must match, if anything: see `search.expression.parse_expression`."""
    mbr: Utility | None = None
    """Rank the texts that are found by this expected utility; the search then looks for
    `beam_size` of them."""
    sampling: Sampling | None = None
    """Draw `n_best` outputs of each sentence instead of searching."""

    def __post_init__(self) -> None:
        if self.method not in get_args(Method):
            raise ValueError(f"method must be beam, exact or enumerate, got {self.method!r}")
        if self.method == "exact" and self.config.stop == "first":
            raise ValueError("stop first goes with a beam search; exact needs another")
        if self.sampling is not None:
            own = self.config
            others = (self.verify, self.ban_unknown, self.mbr, self.regex, self.method != "beam")
            if any(others):
                raise ValueError("sampling takes no method, mbr, verify, ban_unknown or regex")
            if own != SearchConfig(own.beam_size, max(own.n_best, 1), own.max_length):
                raise ValueError("sampling takes n_best (samples) and max_length, nothing else")
        if self.mbr is not None:
            if self.mbr not in UTILITIES:
                raise ValueError(f"mbr must be one of {', '.join(UTILITIES)}, got {self.mbr!r}")
            if self.method == "exact":
                raise ValueError("mbr goes with a beam search or enumerate, not with exact")
            if self.config.penalties.any:
                raise ValueError("mbr is by probability: take the penalties away")
