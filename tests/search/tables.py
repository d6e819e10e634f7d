"""Models small enough to enumerate, with a random distribution after every prefix."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from onmt_entmax.nn.support import as_support
from onmt_entmax.search import EnsembleStepper
from onmt_entmax.search.stepper import Step

BOS, EOS = 0, 1


def entmax_by_bisection(scores: list[float], alpha: float) -> list[float]:
    """Return alpha-entmax of a few scores in plain Python, with exact zeros."""
    if alpha == 1:
        weights = [math.exp(score - max(scores)) for score in scores]
        return [weight / sum(weights) for weight in weights]
    z = [(alpha - 1) * score for score in scores]

    def weights_above(threshold: float) -> list[float]:
        return [max(value - threshold, 0.0) ** (1 / (alpha - 1)) for value in z]

    low, high = max(z) - 1, max(z)  # the sum of the weights is at least 1 at `low`, and 0 at `high`
    for _ in range(60):  # a float has 53 bits
        middle = (low + high) / 2
        if sum(weights_above(middle)) >= 1:
            low = middle
        else:
            high = middle
    p = weights_above(low)
    return [probability / sum(p) for probability in p]


@dataclass(frozen=True)
class Table:
    """A random model: the same seed and prefix always give the same distribution.

    Longer prefixes lean towards the end symbol, so that most trees are finite but not all.
    """

    seed: int
    alpha: float
    vocabulary_size: int = 5
    spread: float = 2.0
    """Standard deviation of the scores."""
    end: float = 0.3
    """Added to the score of the end symbol for each token of the prefix."""

    def log_probs(self, prefix: tuple[int, ...]) -> list[float]:
        """Return the log-probabilities of all tokens after a prefix, which has no `bos`."""
        return random_log_probs(self, prefix)


@lru_cache(maxsize=100_000)
def random_log_probs(table: Table, prefix: tuple[int, ...]) -> list[float]:
    """Return the log-probabilities of a table after a prefix; do not change them."""
    draw = random.Random(f"{table.seed} {prefix}")
    scores = [draw.gauss(0.0, table.spread) for _ in range(table.vocabulary_size)]
    scores[EOS] += table.end * len(prefix)
    return [math.log(p) if p else -math.inf for p in entmax_by_bisection(scores, table.alpha)]


class Fixed(Table):
    """A model given as {prefix: {token: probability}}; other prefixes end."""

    model: dict[tuple[int, ...], dict[int, float]]

    def __init__(self, model: dict[tuple[int, ...], dict[int, float]]) -> None:
        super().__init__(seed=0, alpha=1.0, vocabulary_size=7)
        object.__setattr__(self, "model", model)  # a Table is frozen

    def log_probs(self, prefix: tuple[int, ...]) -> list[float]:
        row = self.model.get(prefix, {EOS: 1.0})
        return [
            math.log(row[token]) if token in row else -math.inf
            for token in range(self.vocabulary_size)
        ]


class RoundedUp(Fixed):
    """A model whose probabilities are rounded above 1."""

    def log_probs(self, prefix: tuple[int, ...]) -> list[float]:
        return [value + 1e-7 for value in super().log_probs(prefix)]


# d r a w | n, and its rivals: the paper's Figure 1 with letters as numbers.
W, N, E, D = 2, 3, 4, 5
DRAW = Fixed(
    {
        (): {W: 1.0},
        (W,): {N: 0.32, E: 0.6, EOS: 0.08},
        (W, N): {EOS: 1.0},
        (W, E): {D: 0.75, N: 0.25},
        (W, E, D): {EOS: 1.0},
    }
)


class TableStepper:
    """Steps through tables; a batch is a list of them, a state the list of (table, prefix).

    Every other step returns the support alone, as models may.

    Args:
        vocabulary_size: of all tables.
        excluded: tokens that no sequence contains.
        dtype: of the log-probabilities.
        attention: whether steps return it: to one source position, with the weight
            `sum(prefix) + 10 * len(prefix)`, which tells prefixes apart.

    Attributes:
        rows: prefixes that were computed.
    """

    def __init__(
        self,
        vocabulary_size: int = 5,
        excluded: tuple[int, ...] = (BOS,),
        dtype: torch.dtype = torch.float64,
        attention: bool = False,
    ) -> None:
        self.bos, self.eos, self.excluded = BOS, EOS, excluded
        self.vocabulary_size = vocabulary_size
        self.can_join, self.dense = True, False
        self.dtype = dtype
        self.attention = attention
        self.rows = 0
        self._calls = 0

    def start(self, batch: list[Table]) -> Any:
        return [(table, None) for table in batch]

    def source_lengths(self, batch: list[Table]) -> list[int]:
        return [1 + table.seed % 4 for table in batch]

    def step(self, state: Any, tokens: Tensor) -> Step:
        self.rows += len(state)
        self._calls += 1
        after = []
        for (table, prefix), token in zip(state, tokens.tolist(), strict=True):
            assert prefix is not None or token == BOS
            after.append((table, () if prefix is None else (*prefix, token)))
        log_probs = torch.tensor(
            [table.log_probs(prefix) for table, prefix in after], dtype=self.dtype
        )
        attention = None
        if self.attention:
            attention = torch.tensor([[sum(prefix) + 10.0 * len(prefix)] for _, prefix in after])
        return Step(as_support(log_probs) if self._calls % 2 else log_probs, attention, after)

    def select(self, state: Any, rows: Tensor) -> Any:
        return [state[row] for row in rows.tolist()]

    def join(self, states: Any) -> Any:
        return [row for state in states for row in state]

    def double(self) -> TableStepper:
        return self


class MemberStepper(TableStepper):
    """A member of an ensemble: each has a table of its own, whatever the batch."""

    def __init__(self, table: Table) -> None:
        super().__init__(table.vocabulary_size)
        self.table = table

    def start(self, batch: list[Any]) -> Any:
        return super().start([self.table] * len(batch))


def ensemble_of(tables: Sequence[Table]) -> EnsembleStepper:
    """Return the ensemble of some tables; the sentences of its batches may be anything."""
    return EnsembleStepper([MemberStepper(table) for table in tables])
