"""How to search with ids of tokens: options of a beam search, and the budget of an exact one.

`SearchTask` (`task.py`) is the whole task, with tokens as text.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np

from onmt_entmax.config import FEW, LIMIT, Checked, option
from onmt_entmax.rules import one_of, whole
from onmt_entmax.search.constraints import Constraints
from onmt_entmax.search.penalties import Penalties

Stop = Literal["exhaustive", "optimal", "first"]
Method = Literal["beam", "exact", "enumerate"]


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
    """When a sentence is done.

    - `exhaustive`: when no prefix is alive; or when the beam has overflowed, so that the support
      cannot be exhausted any more, and `optimal` holds.
    - `optimal`: when no live prefix is more probable than the n-th best finished hypothesis (with
      penalties: can score more at any length).
    - `first`, as in OpenNMT-py: when no live prefix is more probable than the best finished
      hypothesis (with penalties: scores more now) and max(beam_size, n_best) have finished.

    Unless the support may still be exhausted, prefixes that cannot beat the n-th best are dropped.
    """
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
        with np.errstate(over="ignore"):  # NumPy overflows to infinity, Python would raise
            penalty = self.penalties.length_penalty_of(np.float64(self.max_length))
        if penalty == np.inf:
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
