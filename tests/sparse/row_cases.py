"""Rows of scores, their exact probabilities, and how far an implementation may be from these.

A tolerance is a number of roundings times the rounding of one operation. The numbers, constants
here or in a test, are about ten times the largest difference that was seen, since each
implementation adds and multiplies in its own order. A wrong formula differs by far more.
"""

from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

from tests.oracles import entmax_oracle
from tests.sparse.implementations import INTERPRETED

INF = float("inf")
# The interpreter takes seconds for a case, so it gets only some of them.
if INTERPRETED:
    ALPHAS: tuple[float, ...] = (1.2, 1.5, 2.0)
    LENGTHS: tuple[int, ...] = (1, 9, 140)
    WIDTHS: tuple[int, ...] = (200,)  # of special rows
else:
    ALPHAS = (1 + 1e-6, 1.05, 1.2, 1.33, 1.5, 1.75, 2.0, 2.5, 4.0)
    LENGTHS = (1, 2, 9, 17, 50, 513, 776, 5003)
    WIDTHS = (200, 5200)

# Tolerances, in machine epsilons of the type: of a probability, to which each score of the support
# adds one, since a threshold sums over them; and of the base, above alpha 2, whose root a
# probability is there.
PROBABILITY_ROUNDINGS = 16
ROOT_ROUNDINGS = 8
DOUBLE_EPS = torch.finfo(torch.float64).eps  # the definition computes in float64

SPECIAL_ROWS = {
    "equal": [0.0] * 40,
    "one huge": [0.0, 1e30, 0.0, 5.0],
    "ties at the threshold": [1.0, 1.0, 0.0, 0.0, -1.0, -1.0],
    "tied leaders": [2.0, 2.0, 2.0, -5.0],
    "subnormal": [1e-40, -1e-40, 0.0, 3e-42],
    "-inf": [-INF, 0.3, -INF, 0.1],
    "one finite": [-INF, 7.0, -INF],
    "masked": [-1e18] * 9,
    "far from 0": [1e5, 1e5 + 0.25, 1e5 - 0.5, 1e5 + 0.125],
    "outlier": [0.0] * 199 + [1.5],
}


def rounding(exact: Tensor, alpha: float, dtype: torch.dtype) -> Tensor:
    """Return how far probabilities of a type may be from the exact ones.

    Args:
        exact: the probabilities of the definition, ``(rows, n)``.
        alpha: alpha of the mapping.
        dtype: type of the probabilities.

    Returns:
        ``(rows, 1)``.
    """
    # One rounding; in float64, another one, of the definition.
    rounding_unit = max(torch.finfo(dtype).eps, 2 * DOUBLE_EPS)
    support_size = (exact > 0).sum(-1, keepdim=True)
    roundings = PROBABILITY_ROUNDINGS + support_size
    error = rounding_unit * roundings * exact.amax(-1, keepdim=True)
    if dtype == torch.float64:  # the definition divides by alpha - 1
        error = error / min(alpha - 1, 1)
    if alpha > 2:  # a probability is a root of its base, whose rounding is enlarged near 0
        error = error + ROOT_ROUNDINGS * DOUBLE_EPS ** (1 / (alpha - 1))
    return error


def special_rows(length: int) -> Tensor:
    """Return the special rows ``(rows, length)``, filled up with -inf."""
    rows = torch.full((len(SPECIAL_ROWS), length), -INF, dtype=torch.float64)
    for row, scores in zip(rows, SPECIAL_ROWS.values(), strict=True):
        row[: len(scores)] = torch.tensor(scores, dtype=torch.float64)
    return rows


def random_rows(length: int) -> Tensor:
    """Return rows ``(3, length)`` whose scores are near each other, ordinary, and far apart."""
    generator = torch.Generator().manual_seed(length)
    spread = torch.tensor([[0.05], [1.0], [5.0]], dtype=torch.float64)
    return torch.randn(3, length, dtype=torch.float64, generator=generator) * spread


MakeRows = Callable[[int], Tensor]


# Cached for other tests and implementations: the definition takes longer than all of them.
@cache
def rows_and_exact_probabilities(
    make_rows: MakeRows, length: int, alpha: float, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """Return rows of a type, and their probabilities by definition in float64, on the CPU."""
    rows = make_rows(length).to(dtype)
    return rows, entmax_oracle(rows, alpha)


AlphaAndType = tuple[float, torch.dtype]
# Every alpha in float32. In float64 every second one, without the first: so near 1, the definition
# has few digits.
WIDE: list[AlphaAndType] = [
    *((alpha, torch.float32) for alpha in ALPHAS),
    *((alpha, torch.float64) for alpha in ALPHAS[1::2]),
]
HALF: list[AlphaAndType] = [(1.5, torch.bfloat16), (1.5, torch.float16), (2.0, torch.float16)]
# Without float16, whose largest number is 65,504: special rows have larger ones.
HALF_OF_SPECIAL_ROWS: list[AlphaAndType] = [(1.5, torch.bfloat16)]


class Case(NamedTuple):
    """Rows of several lengths, in a type, and their alpha.

    Attributes:
        make_rows: returns the rows ``(rows, n)`` of a length n, in float64.
        lengths: the lengths.
        alpha: alpha of all rows.
        dtype: type to which the rows are rounded.
    """

    make_rows: MakeRows
    lengths: tuple[int, ...]
    alpha: float
    dtype: torch.dtype

    def rows(self, device: str) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield rows ``(rows, n)`` of each length and their exact probabilities on a device."""
        for length in self.lengths:
            rows, exact = rows_and_exact_probabilities(
                self.make_rows, length, self.alpha, self.dtype
            )
            yield rows.to(device), exact.to(device)


def of_random_rows(alphas_and_types: list[AlphaAndType]) -> dict[str, Case]:
    """Return cases of random rows of all LENGTHS, by their names."""
    return {
        f"random rows, {alpha}, {dtype}": Case(random_rows, LENGTHS, alpha, dtype)
        for alpha, dtype in alphas_and_types
    }


def of_special_rows(alphas_and_types: list[AlphaAndType]) -> dict[str, Case]:
    """Return cases of special rows, filled up to all WIDTHS, by their names."""
    return {
        f"special rows, {alpha}, {dtype}": Case(special_rows, WIDTHS, alpha, dtype)
        for alpha, dtype in alphas_and_types
    }


CASES = of_random_rows(WIDE) | of_special_rows(WIDE)
CASES_OF_16_BITS = of_random_rows(HALF) | of_special_rows(HALF_OF_SPECIAL_ROWS)
