"""Models small enough to enumerate, random or written by hand; `TableStepper` searches them."""

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

BOS, EOS = 0, 1


def entmax_by_bisection(scores: list[float], alpha: float) -> list[float]:
    """Return alpha-entmax of a few scores, with exact zeros.

    Enumerations call it thousands of times, for which tensors, as in `tests.oracles`, are slow.
    """
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


class Model(Protocol):
    """A distribution of next tokens after every prefix."""

    @property
    def vocabulary_size(self) -> int: ...

    @property
    def source_length(self) -> int:
        """Length of the source, which search only passes on."""

    def log_probs(self, prefix: tuple[int, ...]) -> Sequence[float]:
        """Return the log-probabilities of all tokens after a prefix, which has no `bos`."""


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

    @property
    def source_length(self) -> int:
        return 1 + self.seed % 4

    # Equal tables share their rows, and no test has so many that memory matters.
    @lru_cache(maxsize=100_000)  # noqa: B019
    def log_probs(self, prefix: tuple[int, ...]) -> tuple[float, ...]:
        draw = random.Random(f"{self.seed} {prefix}")
        scores = [draw.gauss(0.0, self.spread) for _ in range(self.vocabulary_size)]
        scores[EOS] += self.end * len(prefix)
        probabilities = entmax_by_bisection(scores, self.alpha)
        return tuple(math.log(p) if p else -math.inf for p in probabilities)


def random_tables(count: int) -> list[Table]:
    """Return tables of different seeds and alphas."""
    alphas = (1.0, 1.2, 1.5, 2.0)
    return [Table(seed, alphas[seed % len(alphas)]) for seed in range(count)]


@dataclass(frozen=True)
class Fixed:
    """A model given as {prefix: {token: probability}}; other prefixes end."""

    model: Mapping[tuple[int, ...], Mapping[int, float]]
    vocabulary_size = 7
    source_length = 1

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


# Figure 1 of Peters et al. (2019): the ends of `draw`, with letters as numbers.
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
