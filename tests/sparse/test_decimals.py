"""Every implementation of entmax against probabilities that were computed with fifty digits."""

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from onmt_entmax.sparse import entmax
from tests.oracles import entmax_of_decimals
from tests.sparse.alphas import as_number_and_tensor
from tests.sparse.implementations import INTERPRETED

# Tolerances, in machine epsilons of the type: absolute, and for small probabilities relative.
ABSOLUTE_ROUNDINGS = 8
RELATIVE_ROUNDINGS = 16
EVERY = 3 if INTERPRETED else 1  # of the rows, one is taken: the interpreter takes seconds for each


def rows_of_decimals(alpha: float, dtype: torch.dtype) -> list[Tensor]:
    """Return rows ``(1, n)``: pairs with one score near the threshold, random and equal scores."""
    edge = 1 / (alpha - 1)  # beside a score of 0, a score this far below has no probability
    rows = [[0.0, -edge * near] for near in (0.3, 0.99, 0.9999, 1.01)]
    rows += [*(torch.rand(3, 5, dtype=torch.float64) * 1.2 * edge).tolist(), [0.25] * 7]
    return [torch.tensor([scores], dtype=dtype) for scores in rows[::EVERY]]


def probabilities_and_decimals(
    alpha: float, dtype: torch.dtype, device: str
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield probabilities ``(n,)`` and, in float64, those from fifty digits."""
    for row in rows_of_decimals(alpha, dtype):
        exact = entmax_of_decimals(tuple(row[0].tolist()), alpha)
        for alpha_argument in as_number_and_tensor(alpha, row.to(device)):
            with torch.no_grad():
                p = entmax(row.to(device), alpha_argument)[0].cpu().double()
            yield p, torch.tensor(exact, dtype=torch.float64)


# For these, a small probability has as many digits as a large one.
WITH_ALL_DIGITS = [
    (1.37, torch.float64),
    (1.5, torch.float64),
    (2.0, torch.float64),
    (2.25, torch.float32),
    (5.0, torch.float64),
]
WITH_FEWER_DIGITS = [
    (1.0001, torch.float64),
    (1.1, torch.float32),
    (1.5, torch.float32),
    (2.0, torch.float32),
]
if INTERPRETED:  # the kernels take alphas up to 2
    WITH_ALL_DIGITS = [case for case in WITH_ALL_DIGITS if case[0] <= 2]


@pytest.mark.parametrize(("alpha", "dtype"), [*WITH_ALL_DIGITS, *WITH_FEWER_DIGITS])
def test_probabilities_equal_fifty_digits(alpha: float, dtype: torch.dtype, device: str) -> None:
    # Kernels take powers of 1 / (alpha - 1), which multiply the rounding of their base.
    tolerance = ABSOLUTE_ROUNDINGS * torch.finfo(dtype).eps * max(1, 0.5 / (alpha - 1))
    for p, exact in probabilities_and_decimals(alpha, dtype, device):
        assert ((p - exact).abs() <= tolerance).all()


@pytest.mark.parametrize(("alpha", "dtype"), WITH_ALL_DIGITS)
def test_small_probabilities_equal_fifty_digits(
    alpha: float, dtype: torch.dtype, device: str
) -> None:
    for p, exact in probabilities_and_decimals(alpha, dtype, device):
        # The last digit of a score changes several digits of a small probability.
        from_scores = 1e-13 * alpha / exact.clamp_min(1e-30)
        tolerance = RELATIVE_ROUNDINGS * torch.finfo(dtype).eps + from_scores
        assert ((p / exact - 1).abs() <= tolerance)[exact > 1e-6].all()
