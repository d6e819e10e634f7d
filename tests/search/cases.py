"""What a case is: a model made by hand, a search of it, and parts of the result.

Files `*_cases.py` have the cases, and `test_cases.py` runs them.
"""

from typing import NamedTuple, TypedDict

from onmt_entmax.search import Budget, Penalties, SearchConfig
from onmt_entmax.search.certificate import Level

VOCABULARY_SIZE = 7
"""0 and 1 are the start and end symbols; tokens are 2 to 6."""
TOKENS = [2, 3, 4]
"""Tokens that the regular expressions of cases can name."""

Model = dict[tuple[int, ...], dict[int, float]]
"""By prefix, the probabilities of the next tokens; prefixes that are not named end."""


class Expected(TypedDict, total=False):
    """The parts of a result that a case names.

    `SearchResult` and `Certificate` explain those without a comment.
    """

    tokens: list[tuple[int, ...]]  # of all hypotheses, the best first
    score: float  # of the first hypothesis
    finished: int
    only: bool
    unfinished: tuple[int, ...] | None  # its tokens
    rows: int
    support: int
    level: Level
    bound: float
    gap: float
    proven: int
    mass: float
    dropped: int
    truncated: int
    excluded: float
    excluded_bound: float  # a probability
    strict: bool
    satisfied: tuple[float, float]


class Case(NamedTuple):
    """A search and its result."""

    model: Model
    expected: Expected
    """One part of the result at least."""
    config: SearchConfig = SearchConfig()
    regex: str | None = None
    """What outputs must match, with tokens named by their ids."""
    budget: Budget | None = None
    """Budget of an exact search."""
    mass: float = 1.0
    """Probability that an exact search lists, if it lists all."""


# --- penalties and a model of several files of cases ---

# Scores are log-probabilities divided by the number of tokens, start and end symbols included.
AVERAGE = Penalties("avg")
# A score is minus infinity if the output does not attend to the only source position. With a
# `TableStepper`, only the empty output does not; all others attend to it enough to cost nothing.
COVERED = Penalties(coverage_penalty="wu", beta=1.0)
# Four outputs of two tokens, 2 or 3 each, with a probability of 1/4 each.
PAIRS: Model = {prefix: {2: 0.5, 3: 0.5} for prefix in ((), (2,), (3,))}
