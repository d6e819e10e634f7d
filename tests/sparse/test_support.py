"""Every implementation of entmax puts the same scores into the support, up to the threshold."""

import math
from collections.abc import Callable
from functools import cache

import pytest
import torch
from torch import Tensor

from onmt_entmax.sparse import entmax, entmax_loss, log_entmax
from tests.oracles import entmax_oracle
from tests.sparse.alphas import forms_of_alpha
from tests.sparse.implementations import INTERPRETED

INF = float("inf")
LENGTHS = (9, 40)
ROWS = 4 if INTERPRETED else 100  # the interpreter takes seconds

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


@cache  # for all tests and implementations
def rows_on_the_threshold(alpha: float, length: int, dtype: torch.dtype) -> Tensor:
    """Return rows ``(ROWS, length)`` whose last three scores lie at the threshold of the others.

    The last is the threshold, rounded to the type. In types of 32 or 64 bits, those before it are
    the neighbours of this number, above and below; in others, -inf.
    """
    generator = torch.Generator().manual_seed(0)
    # From -15 to 1.
    scores = torch.randint(-480, 33, (ROWS, length), generator=generator).double() / 32
    scores[:, -3:] = -INF
    probabilities = entmax_oracle(scores, alpha)
    best = scores.argmax(1, keepdim=True)
    base = probabilities.gather(1, best) ** (alpha - 1)
    threshold = (scores.gather(1, best) - base / (alpha - 1)).to(dtype)
    scores[:, -1:] = threshold.double()
    if dtype.itemsize > 2:  # `nextafter` takes no others
        below, above = (torch.tensor(end, dtype=dtype) for end in (-INF, INF))
        scores[:, -2:-1] = threshold.nextafter(below).double()
        scores[:, -3:-2] = threshold.nextafter(above).double()
    return scores.to(dtype)


@of_all_types
def test_probabilities_are_positive_where_logarithms_are_finite(
    alpha: float, dtype: torch.dtype, device: str
) -> None:
    for length in LENGTHS:
        rows = rows_on_the_threshold(alpha, length, dtype).to(device)
        for form in forms_of_alpha(alpha, rows):
            is_in_support = entmax(rows, form) > 0
            assert torch.equal(is_in_support, log_entmax(rows, form) > -INF), f"{length} scores"


@of_all_types
@pytest.mark.parametrize(("mapping", "nothing"), [(entmax, 0.0), (log_entmax, -INF)])
def test_scores_outside_the_support_have_no_gradient(
    mapping: Callable[..., Tensor], nothing: float, alpha: float, dtype: torch.dtype, device: str
) -> None:
    for length in LENGTHS:
        rows = rows_on_the_threshold(alpha, length, dtype).to(device)
        scores = rows.clone().requires_grad_()
        for form in forms_of_alpha(alpha, scores):
            values = mapping(scores, form)
            (gradient,) = torch.autograd.grad(values, scores, torch.randn_like(scores))
            assert not gradient[values == nothing].any(), f"{length} scores"


@of_32_and_64_bits
def test_a_loss_has_a_gradient_in_the_scores_of_the_support_alone(
    alpha: float, dtype: torch.dtype, device: str
) -> None:
    """The first score is that of the target, which may have a gradient outside of the support."""
    for length in LENGTHS:
        rows = rows_on_the_threshold(alpha, length, dtype).to(device)
        target = torch.zeros(len(rows), dtype=torch.int64, device=device)
        for form in forms_of_alpha(alpha, rows):
            scores = rows.clone().requires_grad_()
            loss = entmax_loss(scores, target, form, reduction="sum")
            (gradient,) = torch.autograd.grad(loss, scores)
            is_in_support = entmax(rows, form) > 0
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
def test_members_next_to_the_threshold_stay_positive(
    dtype: torch.dtype, near: float, device: str
) -> None:
    """At alpha 1.1, the threshold is a little less than 10 below the largest score."""
    row = torch.tensor([0.0, -9.5, near, -11.0], dtype=dtype, device=device)
    assert (entmax(row, 1.1) > 0).tolist() == [True, True, True, False]
    assert (log_entmax(row, 1.1) > -INF).tolist() == [True, True, True, False]


def test_probabilities_too_small_for_normal_numbers_stay_positive(device: str) -> None:
    scores = torch.tensor([0.0, -800.0], device=device)
    assert 0 < entmax(scores, 1.001)[1] < 1e-44
    # Of the definition: (1 - 0.001 * 800) ** (1 / 0.001), beside a largest probability of 1.
    assert float(log_entmax(scores, 1.001)[1]) == pytest.approx(1000 * math.log(0.2), 1e-6)
