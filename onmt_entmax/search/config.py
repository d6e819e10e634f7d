"""The options of a beam search, `SearchConfig`, and the limits of an exact one, `Budget`.

Tokens are ids here; `SearchTask` of `task.py` names them by their text.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np

from onmt_entmax.config import COUNT, FEW, LIMIT, AnyOf, Checked, Equals, option
from onmt_entmax.rules import one_of, whole
from onmt_entmax.search.constraints import Constraints
from onmt_entmax.search.penalties import Penalties

Stop = Literal["exhaustive", "optimal", "first"]
_USES_A_BEAM = AnyOf(Equals("search", "beam"), Equals("search", "exact"))


@dataclass(frozen=True)
class SearchConfig(Checked):
    """How to search; options that OpenNMT-py has keep its names."""

    beam_size: int = option(
        5,
        FEW,
        help="Prefixes kept per sentence.",
        topic="Outputs",
        needs=_USES_A_BEAM,
    )
    n_best: int = option(1, COUNT)
    """Hypotheses returned for each sentence; 0 returns all that finished."""
    max_length: int = option(
        100, whole(0, 10**6), help="Longest output, in tokens.", topic="Outputs"
    )
    """Longest sequence, without its end symbol; longer prefixes are cut, and the certificate counts
    them."""
    stop: Stop = option(
        "exhaustive",
        one_of(*get_args(Stop)),
        help="exhaustive: when all outputs are found; optimal: when the best are proven; first: as "
        "in OpenNMT-py.",
        topic="Search and certificates",
        needs=_USES_A_BEAM,
    )
    """When the search of a sentence ends.

    - `exhaustive`: when no live prefix is left. Once the beam has overflowed, the support cannot be
      exhausted, and the search ends as with `optimal`.
    - `optimal`: when no live prefix is more probable than the n-th best finished hypothesis. With
      penalties: when no continuation of a live prefix, of any length, can have a higher score.
    - `first`, as in OpenNMT-py: when no live prefix is more probable than the best finished
      hypothesis, and max(beam_size, n_best) hypotheses have finished. With penalties: when no live
      prefix has a higher score now.

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
        with np.errstate(over="ignore"):  # NumPy overflows to infinity, Python would raise
            penalty = self.penalties.length_penalty_of(np.float64(self.max_length))
        if penalty == np.inf:
            yield "alpha", "too large: the penalty of max_length overflows"


@dataclass(frozen=True)
class Budget(Checked):
    """Limits of an exact search of one sentence.

    A search that they cut short returns the best hypotheses found, and a bound on all others.
    """

    expansions: int = option(10_000, LIMIT)
    """Prefixes whose next-token probabilities are computed."""
    states: int = option(20_000, LIMIT)
    """Prefixes whose decoder state is kept: a few kilobytes each for a recurrent decoder. Each
    continuation that waits needs 32 bytes more; if `enumerate` searches a softmax model, all
    continuations wait."""
    rows: int = option(64, LIMIT)
    """Prefixes that the decoder computes together."""
