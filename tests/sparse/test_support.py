"""The support of entmax: which scores have a positive probability, and so a gradient.

A probability is positive if its score is above a threshold. Mapping, logarithm, gradients and loss
must have the same scores above it, even among numbers next to each other.
"""

import math
from collections.abc import Callable
from functools import cache

import pytest
import torch
from torch import Tensor

from onmt_entmax.sparse import entmax, entmax_loss, log_entmax
from tests.oracles import entmax_oracle
from tests.sparse.alphas import as_number_and_tensor
from tests.sparse.implementations import INTERPRETED

INF = float("inf")
LENGTHS = (9, 40)
ROWS = 4 if INTERPRETED else 100  # the interpreter takes seconds

# Alphas with types of 32 or 64 bits, and with types of 16 bits.
if INTERPRETED:
    WIDE = [(1.5, torch.float64), (2.0, torch.float32), (2.0, torch.float64)]
    NARROW = [(1.5, torch.bfloat16)]
else:
    WIDE = [
        (1.05, torch.float64),
        (1.2, torch.float64),
        (1.2, torch.float32),
        (1.33, torch.float32),
        (1.5, torch.float64),
        (1.75, torch.float64),
        (1.75, torch.float32),
        (2.0, torch.float32),
        (2.5, torch.float64),
        (4.0, torch.float64),
        (4.0, torch.float32),
    ]
    NARROW = [(alpha, torch.bfloat16) for alpha in (1.05, 1.33, 1.5, 2.0, 2.5)]

of_all_types = pytest.mark.parametrize(("alpha", "dtype"), [*WIDE, *NARROW])
of_32_and_64_bits = pytest.mark.parametrize(("alpha", "dtype"), WIDE)


def threshold_of(scores: Tensor, alpha: float) -> Tensor:
    """Return the scores ``(rows, 1)`` above which the rows' probabilities are positive.

    By the definition, the largest score z has probability ((alpha - 1) (z - threshold)) ^ (1 /
    (alpha - 1)).
    """
    largest = scores.amax(1, keepdim=True)
    probability = entmax_oracle(scores, alpha).amax(1, keepdim=True)
    return largest - probability ** (alpha - 1) / (alpha - 1)


@cache  # for all tests and implementations
def rows_on_the_threshold(alpha: float, length: int, dtype: torch.dtype) -> Tensor:
    """Return rows ``(ROWS, length)`` with scores on the threshold and next to it.

    The last three scores of a row are, in this order: the number of the type above the threshold,
    the number below it, and the threshold of all other scores itself, rounded to the type. Types of
    16 bits have -inf in place of the first two.
    """
    generator = torch.Generator().manual_seed(0)
    # Multiples of 1 / 32 from -15 to 1, which float32 represents exactly.
    others = torch.randint(-480, 33, (ROWS, length - 3), generator=generator).double() / 32
    threshold = threshold_of(others, alpha).to(dtype)
    above = below = torch.full_like(threshold, -INF)
    if dtype.itemsize > 2:  # `nextafter` takes no others
        above = threshold.nextafter(torch.tensor(INF, dtype=dtype))
        below = threshold.nextafter(torch.tensor(-INF, dtype=dtype))
    return torch.cat([others.to(dtype), above, below, threshold], 1)


@of_all_types
def test_the_rows_have_scores_on_both_sides_of_the_threshold(
    alpha: float, dtype: torch.dtype
) -> None:
    """The definition puts scores on both sides. Without that, the other tests would show little."""
    rows = [rows_on_the_threshold(alpha, length, dtype) for length in LENGTHS]
    near = torch.cat([row[:, -3:] for row in rows])
    is_in_support = torch.cat([entmax_oracle(row, alpha)[:, -3:] > 0 for row in rows])
    assert set(is_in_support[near > -INF].tolist()) == {True, False}


@of_all_types
def test_probabilities_are_positive_where_logarithms_are_finite(
    alpha: float, dtype: torch.dtype, device: str
) -> None:
    for length in LENGTHS:
        rows = rows_on_the_threshold(alpha, length, dtype).to(device)
        for alpha_argument in as_number_and_tensor(alpha, rows):
            is_positive = entmax(rows, alpha_argument) > 0
            is_finite = log_entmax(rows, alpha_argument) > -INF
            assert torch.equal(is_positive, is_finite), f"{length} scores"


@of_all_types
@pytest.mark.parametrize(("mapping", "outside"), [(entmax, 0.0), (log_entmax, -INF)])
def test_scores_outside_the_support_have_no_gradient(
    mapping: Callable[..., Tensor], outside: float, alpha: float, dtype: torch.dtype, device: str
) -> None:
    for length in LENGTHS:
        rows = rows_on_the_threshold(alpha, length, dtype).to(device)
        scores = rows.clone().requires_grad_()
        for alpha_argument in as_number_and_tensor(alpha, scores):
            values = mapping(scores, alpha_argument)
            (gradient,) = torch.autograd.grad(values, scores, torch.randn_like(scores))
            is_outside = values == outside
            assert is_outside.any()
            assert not gradient[is_outside].any(), f"{length} scores"


@of_32_and_64_bits
def test_a_loss_has_a_gradient_for_scores_of_the_support_only(
    alpha: float, dtype: torch.dtype, device: str
) -> None:
    """The score of the target, the first one, is left out: it always has a gradient."""
    for length in LENGTHS:
        rows = rows_on_the_threshold(alpha, length, dtype).to(device)
        target = torch.zeros(len(rows), dtype=torch.int64, device=device)
        for alpha_argument in as_number_and_tensor(alpha, rows):
            scores = rows.clone().requires_grad_()
            loss = entmax_loss(scores, target, alpha_argument, reduction="sum")
            (gradient,) = torch.autograd.grad(loss, scores)
            is_in_support = entmax(rows, alpha_argument) > 0
            assert torch.equal((gradient != 0)[:, 1:], is_in_support[:, 1:]), f"{length} scores"


@pytest.mark.parametrize("shift", [0.0, 3.0, -2.0, 0.125])
def test_a_score_on_the_threshold_is_outside(shift: float, device: str) -> None:
    """At alpha 2, dyadic scores have a dyadic threshold: here that of 1 and 0.75 is 0.375."""
    row = torch.tensor([1.0, 0.75, 0.375, -4.0], dtype=torch.float64, device=device) + shift
    assert (entmax(row, 2.0) > 0).tolist() == [True, True, False, False]


@pytest.mark.parametrize("shift", [0.0, 3.0, -2.0, 0.125])
def test_a_score_just_above_the_threshold_is_inside(shift: float, device: str) -> None:
    row = torch.tensor([1.0, 0.75, 0.375 + 1e-12, -4.0], dtype=torch.float64, device=device)
    assert (entmax(row + shift, 2.0) > 0).tolist() == [True, True, True, False]


@pytest.mark.parametrize(("dtype", "near"), [(torch.float32, -9.99999), (torch.float16, -9.9375)])
@pytest.mark.parametrize(("mapping", "outside"), [(entmax, 0.0), (log_entmax, -INF)])
def test_a_score_next_to_the_threshold_does_not_underflow(
    mapping: Callable[..., Tensor], outside: float, dtype: torch.dtype, near: float, device: str
) -> None:
    """At alpha 1.1, the threshold is a little less than 10 below the largest score.

    The probability is a tenth power, too small for the type of the scores.
    """
    row = torch.tensor([0.0, -9.5, near, -11.0], dtype=dtype, device=device)
    assert (mapping(row, 1.1) > outside).tolist() == [True, True, True, False]


def test_a_probability_below_the_smallest_float32_is_not_0(device: str) -> None:
    """It is (1 - 0.001 * 800) ^ (1 / 0.001), beside a largest probability of 1: about 1e-699."""
    scores = torch.tensor([0.0, -800.0], device=device)
    assert 0 < entmax(scores, 1.001)[1] < 1e-44  # rounded up to the smallest positive number


def test_a_probability_below_the_smallest_float32_has_its_logarithm(device: str) -> None:
    scores = torch.tensor([0.0, -800.0], device=device)
    assert float(log_entmax(scores, 1.001)[1]) == pytest.approx(1000 * math.log(0.2), 1e-6)
