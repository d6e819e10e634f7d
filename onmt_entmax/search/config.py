"""Options of a search: penalties, beam search, budget of an exact search, and the task."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
from torch import Tensor

from onmt_entmax.config import FEW, LIMIT, TARGET_SYMBOLS, Checked, TargetSymbols, option
from onmt_entmax.rules import FLAG, number, one_of, positive, whole
from onmt_entmax.search.constraints import Constraints
from onmt_entmax.search.sampling import Sampling
from onmt_entmax.search.utilities import UTILITIES, Utility


@dataclass(frozen=True)
class Penalties(Checked):
    """What a score is: log-probability, penalties and reward.

    `score = log_prob / length penalty - beta * coverage penalty`, as OpenNMT-py computes it, or
    `score = log_prob + length_reward * min(n, length_ratio * source length) - beta * coverage
    penalty`: the bounded length reward of Huang, Zhao and Ma (2017) and Yang, Huang and Ma (2018).
    As there, n counts the end symbol; the source length is in tokens as the model reads them.
    """

    length_penalty: str = option(
        "none", one_of("none", "wu", "avg"), "Length penalty of the score.", "Outputs"
    )
    """`wu`: ((5 + n) / 6) ** alpha (Wu et al. 2016, Eq. 14); `avg`: n. As in OpenNMT-py, n includes
    the start and end symbols."""
    alpha: float = option(
        0.0, number(0, 1000), "Strength of the penalty.", "Outputs", "length_penalty: wu"
    )
    coverage_penalty: str = option(
        "none", one_of("none", "wu", "summary"), "Coverage penalty of the score.", "Outputs", "beta"
    )
    """With c the total attention that a source position received: `wu`: the sum of -log(min(c, 1))
    (Wu et al. 2016, Eq. 14), infinite if sparse attention leaves a position out; `summary`: the sum
    of max(c, 1) - 1 (Gehrmann et al. 2018)."""
    beta: float = option(
        0.0, number(0, 1000), "Weight of coverage_penalty.", "Outputs", "coverage_penalty"
    )
    length_reward: float = option(
        0.0,
        number(0, 1000),
        "Added to the score for each output token, the end symbol too.",
        "Outputs",
    )
    length_ratio: float = option(
        1.2,
        positive(1000),
        "The reward is for at most this many output tokens per source token.",
        "Outputs",
        "length_reward",
    )

    def misfits(self) -> Iterator[tuple[str, str]]:
        """Yield the name of each value that does not fit others, and why."""
        if self.length_reward and self.length_penalty != "none":
            yield "length_reward", "does not go with length_penalty: choose one of them"

    @property
    def any(self) -> bool:
        """Whether scores differ from log-probabilities."""
        return self.length_penalty != "none" or self.length_reward > 0 or self.covers

    @property
    def covers(self) -> bool:
        """Whether scores depend on attention."""
        return self.coverage_penalty != "none" and self.beta > 0

    def length(self, tokens: Any) -> Any:
        """Return the length penalty.

        Args:
            tokens: length without start and end symbols, a number or an array; the result is of the
                same kind.
        """
        if self.length_penalty == "wu":
            return ((5 + tokens + 2) / 6) ** self.alpha
        return tokens + 2.0 if self.length_penalty == "avg" else tokens * 0 + 1.0

    def rewarded(self, log_prob: Any, tokens: Any, source_length: Any) -> Any:
        """Return log-probabilities with the length penalty or reward.

        Args:
            log_prob: a number or an array; the result is of the same kind.
            tokens: length without start and end symbols.
            source_length: in tokens, a number or an array; only read with a reward.
        """
        if not self.length_reward:
            return log_prob / self.length(tokens)
        longest = self.length_ratio * source_length
        return log_prob + self.length_reward * np.minimum(tokens + 1, longest)

    def score(
        self, log_prob: float, tokens: int, attention: Tensor | None, source_length: int = 0
    ) -> float:
        """Return the score of a finished hypothesis.

        Args:
            log_prob: of the hypothesis.
            tokens: its length without start and end symbols.
            attention: `(steps, source length without padding)`; needed for a coverage penalty.
            source_length: in tokens; needed for a length reward.
        """
        score = float(self.rewarded(log_prob, tokens, source_length))
        if self.covers:
            assert attention is not None, "a coverage penalty needs attention"
            covered = attention.double().sum(0)
            if self.coverage_penalty == "wu":
                score += self.beta * float(covered.clamp(max=1).log().sum())
            else:
                score -= self.beta * float((covered.clamp(min=1) - 1).sum())
        return score

    def attainable(self, log_prob: Any, max_length: int, source_length: Any) -> Any:
        """Return the best score of any sequence that starts with a prefix of this log-probability.

        With a length penalty, only sequences of at most `max_length` tokens count. Their
        log-probability is at most the prefix's, no length penalty exceeds that of the longest, no
        length reward exceeds that of an endless one, and no coverage penalty is negative. Division
        by a positive number and addition keep the order in floating point too, so no margin is
        needed.

        Args:
            log_prob: a number or an array; the result is of the same kind.
            max_length: longest sequence, without its end symbol.
            source_length: as for `rewarded`.
        """
        return self.rewarded(
            log_prob, math.inf if self.length_reward else max_length, source_length
        )


Stop = Literal["exhaustive", "optimal", "first"]


@dataclass(frozen=True)
class SearchConfig(Checked):
    """How to search; options that OpenNMT-py has keep its names."""

    beam_size: int = option(
        5, FEW, "Prefixes kept per sentence.", "Outputs", "search: beam or search: exact"
    )
    n_best: int = 1
    """Hypotheses returned for each sentence; 0 returns all that finished."""
    max_length: int = option(100, whole(0, 10**6), "Longest output, in tokens.", "Outputs")
    """Longest sequence, without its end symbol; longer prefixes are cut, and the certificate counts
    them."""
    stop: Stop = option(
        "exhaustive",
        one_of(*get_args(Stop)),
        "exhaustive: when all outputs are found; optimal: when the best are proven; first: as in "
        "OpenNMT-py.",
        "Search and certificates",
        "search: beam or search: exact",
    )
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

    def misfits(self) -> Iterator[tuple[str, str]]:
        """Yield the name of each value that does not fit others, and why."""
        if self.n_best < 0:
            yield "n_best", f"must be at least 0, not {self.n_best}"
        with np.errstate(over="ignore"):
            longest = self.penalties.length(np.float64(self.max_length))
        if longest == np.inf:
            yield "alpha", "too large: the penalty of max_length overflows"


@dataclass(frozen=True)
class Budget(Checked):
    """Limits of an exact search, which then returns the best found and a bound."""

    expansions: int = option(10_000, LIMIT)
    """Prefixes computed, for one sentence."""
    states: int = option(20_000, LIMIT)
    """Prefixes whose decoder state is kept: a few kilobytes each for a recurrent decoder."""
    rows: int = option(64, LIMIT)
    """Prefixes computed together."""


Method = Literal["beam", "exact", "enumerate"]


@dataclass(frozen=True)
class SearchTask(Checked):
    """What to search for, with tokens named by their text: the vocabulary is not needed yet."""

    config: SearchConfig = field(default_factory=SearchConfig)
    """Its constraints may name tokens by id; the fields below are added to them."""
    method: Method = "beam"
    """`exact`: a beam search (whose `stop` must not be `first`), then an exact search of sentences
    whose `n_best` are not proven; `enumerate`: list the support from the most probable sequence
    down."""
    budget: Budget = field(default_factory=Budget)
    """Limits of `exact` and `enumerate`, for one sentence."""
    mass: float = option(
        1.0,
        positive(1),
        "Probability at which enumerate may stop.",
        "Search and certificates",
        "search: enumerate",
    )
    """Total probability at which `enumerate` may stop."""
    verify: bool = option(
        False,
        FLAG,
        "Recompute certified sentences in float64, and count disagreements.",
        "Search and certificates",
    )
    matmul_dtype: str = option(
        "float32",
        one_of("float32", "bfloat16"),
        "Type of products in the LSTMs.",
        "Search and certificates",
    )
    """`bfloat16` is faster on processors that have it, and computes other probabilities."""
    ban_unknown: bool = False
    """Whether to ban `<unk>`."""
    ignore_when_blocking: tuple[str, ...] = ()
    """Tokens whose n-grams may repeat in spite of `block_ngram_repeat`."""
    regex: str | None = None
    """What every output must match, if anything: see `search.expression.parse_expression`."""
    target_symbols: TargetSymbols | None = option(
        None,
        one_of(*get_args(TargetSymbols), off=None),
        "language: exclude target symbols that neither training targets of the source's language "
        f"nor the source have; any: exclude none. Default: {TARGET_SYMBOLS}.",
        "Outputs",
    )
    """Which symbols outputs may have. None: `TARGET_SYMBOLS`."""
    mbr: Utility | None = option(
        None,
        one_of(*UTILITIES, off=None),
        "Write the output of the highest expected utility, among those found.",
        "Search and certificates",
    )
    """Rank the texts that are found by this expected utility; the search then looks for
    `beam_size` of them."""
    sampling: Sampling | None = None
    """Draw `n_best` outputs of each sentence instead of searching."""

    def misfits(self) -> Iterator[tuple[str, str]]:
        """Yield the name of each value that does not fit others, and why."""
        config, penalties = self.config, self.config.penalties.any
        if self.method not in get_args(Method):
            yield "search", f"must be beam, exact or enumerate, not {self.method!r}"
        if self.method == "exact" and config.stop == "first":
            yield "stop", "first goes with search: beam"
        if self.method == "enumerate" and penalties:
            yield "search", "enumerate lists by probability, without penalties"
        if self.method == "enumerate" and config.n_best:
            yield "search", "enumerate lists all: n_best must be 0"
        if self.mbr is not None and self.method == "exact":
            yield "mbr", "goes with search: beam or enumerate"
        if self.mbr is not None and penalties:
            yield "mbr", "is by probability, without penalties"
        if self.sampling is not None and self._has_search_options():
            name = "random_sampling_topk" if self.sampling.topk else "random_sampling_topp"
            yield name, "of a search, random sampling takes n_best and max_length alone"

    def _has_search_options(self) -> bool:
        """Return whether an option is set that sampling does not read; `beam_size` is ignored."""
        config = self.config
        plain = SearchConfig(config.beam_size, max(config.n_best, 1), config.max_length)
        options = (config, self.method, self.verify, self.ban_unknown, self.regex, self.mbr)
        return options != (plain, "beam", False, False, None, None)
