"""Options of a search: of a beam search, the budget of an exact search, and the whole task."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np

from onmt_entmax.config import FEW, LIMIT, TARGET_SYMBOLS, Checked, TargetSymbols, option
from onmt_entmax.rules import FLAG, one_of, positive, whole
from onmt_entmax.search.constraints import Constraints
from onmt_entmax.search.penalties import Penalties
from onmt_entmax.search.sampling import Sampling
from onmt_entmax.search.utilities import UTILITIES, Utility

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
        config = self.config
        has_penalties = config.penalties.change_scores
        if self.method not in get_args(Method):
            yield "search", f"must be beam, exact or enumerate, not {self.method!r}"
        if self.method == "exact" and config.stop == "first":
            yield "stop", "first goes with search: beam"
        if self.method == "enumerate" and has_penalties:
            yield "search", "enumerate lists by probability, without penalties"
        if self.method == "enumerate" and config.n_best:
            yield "search", "enumerate lists all: n_best must be 0"
        if self.mbr is not None and self.method == "exact":
            yield "mbr", "goes with search: beam or enumerate"
        if self.mbr is not None and has_penalties:
            yield "mbr", "is by probability, without penalties"
        if self.sampling is not None and self._has_search_options():
            name = "random_sampling_topk" if self.sampling.topk else "random_sampling_topp"
            yield name, "of a search, random sampling takes n_best and max_length alone"

    def _has_search_options(self) -> bool:
        """Return whether an option is set that sampling does not read; `beam_size` is ignored."""
        config = self.config
        as_sampling_reads_it = SearchConfig(
            beam_size=config.beam_size, n_best=max(config.n_best, 1), max_length=config.max_length
        )
        if config != as_sampling_reads_it:
            return True
        if self.method != "beam" or self.verify or self.ban_unknown:
            return True
        return self.regex is not None or self.mbr is not None
