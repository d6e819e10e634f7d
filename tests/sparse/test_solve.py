"""`solve` of every implementation, in float32 and float64: probabilities and shifted conjugates.

`Case.rows` yields rows of scores ``(rows, n)`` and their probabilities by the definition of entmax.
"""

import pytest
import torch
from torch import Tensor

from onmt_entmax.sparse.backends import solve
from tests.oracles import entropy_oracle
from tests.sparse.row_cases import CASES, DOUBLE_EPS, Case, rounding

# How far a shifted conjugate may be from the definition, in roundings of one plus the conjugate.
CONJUGATE_ROUNDINGS = 64

each_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


def assert_close(actual: Tensor, expected: Tensor, tolerance: Tensor, scores: Tensor) -> None:
    """Check that every element is within a tolerance.

    Args:
        actual: results of an implementation, in the type of its scores.
        expected: results of the definition, in float64.
        tolerance: largest absolute difference, of a shape that broadcasts with these.
        scores: rows ``(rows, n)`` that were solved, for the message.
    """
    difference = (actual.double() - expected).abs()
    # `<=` and not `>`, so that nan fails.
    assert (difference <= tolerance).all(), f"{scores.shape[1]} scores a row: {difference.max()}"


@each_case
def test_solve_may_replace_scores_by_probabilities(case: Case, device: str) -> None:
    for rows, exact in case.rows(device):
        scores = rows.clone()
        solve(scores, case.alpha, scores)
        assert_close(scores, exact, rounding(exact, case.alpha, case.dtype), rows)


@each_case
def test_solve_returns_the_largest_score_of_each_row(case: Case, device: str) -> None:
    for rows, _ in case.rows(device):
        _, maxima = solve(rows.clone(), case.alpha, torch.empty_like(rows))
        assert torch.equal(maxima, rows.amax(-1)), f"{rows.shape[1]} scores a row"


@each_case
def test_shifted_conjugates_are_those_of_the_definition(case: Case, device: str) -> None:
    """A conjugate is the expected score plus entropy; shifted, less the row's largest score.

    The definition of entropy divides by alpha - 1. For the alpha nearest to 1, of which there are
    only float32 cases, this makes errors of 1e-9 in float64: less than a rounding of float32, 1e-7.
    """
    rounding_unit = max(torch.finfo(case.dtype).eps, 4 * DOUBLE_EPS)
    for rows, exact in case.rows(device):
        shifted, _ = solve(rows.clone(), case.alpha, torch.empty_like(rows))
        below_maximum = torch.where(exact > 0, rows.double() - rows.double().amax(-1, True), 0.0)
        expected = (exact * below_maximum).sum(-1) + entropy_oracle(exact, case.alpha)
        tolerance = CONJUGATE_ROUNDINGS * rounding_unit * (1 + expected)
        assert_close(shifted, expected, tolerance, rows)


@each_case
def test_shifted_conjugates_are_not_negative(case: Case, device: str) -> None:
    for rows, _ in case.rows(device):
        shifted, _ = solve(rows.clone(), case.alpha, torch.empty_like(rows))
        assert (shifted >= 0).all(), f"{rows.shape[1]} scores a row: {shifted.min()}"
