"""What a case is: a model made by hand, a search of it, and what the result must be.

Files `*_cases.py` have them, and `test_cases.py` runs them.
"""

from typing import Any, NamedTuple

from onmt_entmax.search import Budget, Penalties, SearchConfig

VOCABULARY_SIZE = 7
"""0 and 1 are the start and end symbols; tokens are 2 to 6."""
TOKENS = [2, 3, 4]
"""Tokens that the regular expressions of cases can name."""

Model = dict[tuple[int, ...], dict[int, float]]
"""By prefix, the probabilities of the next tokens; prefixes that are not named end."""


class Case(NamedTuple):
    """A search and its result."""

    model: Model
    expected: dict[str, Any]
    """Parts of the result, one at least, by the names of `test_cases.parts_of`."""
    config: SearchConfig = SearchConfig()
    regex: str | None = None
    """What outputs must match, with tokens named by their ids."""
    budget: Budget | None = None
    """Budget of an exact search."""
    mass: float = 1.0
    """Probability that an exact search lists, if it lists all."""


# Scores are log-probabilities divided by the number of tokens, start and end symbols included.
AVERAGE = Penalties("avg")
# A score is minus infinity if the output does not attend to the only source position. Of a
# `TableStepper`, every prefix but the empty one attends to it enough to cost nothing.
COVERED = Penalties(coverage_penalty="wu", beta=1.0)
# Each token has one half: 2 or 3, then again, then the end.
PAIRS: Model = {prefix: {2: 0.5, 3: 0.5} for prefix in ((), (2,), (3,))}
