"""`solve` of every implementation, in float32 and float64: probabilities and shifted conjugates."""

import pytest
import torch

from onmt_entmax.sparse.backends import solve
from tests.oracles import entropy_oracle
from tests.sparse.row_cases import CASES, DOUBLE_EPS, Case, rounding

OF_A_CONJUGATE = 64  # its tolerance, in roundings of the type

each_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


@each_case
def test_solve_may_replace_scores_by_probabilities(case: Case, device: str) -> None:
    for rows, exact in case.rows(device):
        scores = rows.clone()
        solve(scores, case.alpha, scores)
        close = rounding(exact, case.alpha, case.dtype)
        assert ((scores.double() - exact).abs() <= close).all(), f"{rows.shape[1]} scores"


@each_case
def test_solve_returns_the_largest_score_of_each_row(case: Case, device: str) -> None:
    for rows, _ in case.rows(device):
        _, maxima = solve(rows.clone(), case.alpha, torch.empty_like(rows))
        assert torch.equal(maxima, rows.amax(-1)), f"{rows.shape[1]} scores"


@each_case
def test_solve_returns_shifted_conjugates(case: Case, device: str) -> None:
    """A conjugate is the expected score plus entropy; shifted, less the row's largest score."""
    close = OF_A_CONJUGATE * max(torch.finfo(case.dtype).eps, 4 * DOUBLE_EPS)
    if case.alpha <= 1.01:  # the definition of entropy divides by alpha - 1, which is 1e-6 or more
        close = 1e6 * close
    for rows, exact in case.rows(device):
        shifted, maxima = solve(rows.clone(), case.alpha, torch.empty_like(rows))
        below = torch.where(exact > 0, rows.double() - maxima.double().unsqueeze(1), 0.0)
        conjugate = (exact * below).sum(1) + entropy_oracle(exact, case.alpha)
        assert (shifted >= 0).all(), f"{rows.shape[1]} scores"
        assert ((shifted.double() - conjugate).abs() <= close * (1 + conjugate)).all(), (
            f"{rows.shape[1]} scores"
        )
