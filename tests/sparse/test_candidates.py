"""The search for candidates of the support: nothing of it may be left out."""

import pytest
import torch

from onmt_entmax.sparse.candidates import lower_bound, select
from onmt_entmax.sparse.solvers import solve_power


@pytest.mark.parametrize("alpha", [1.2, 1.34, 1.5, 2.0])
@pytest.mark.parametrize("length", [640, 4160])
def test_the_bound_is_below_the_threshold_of_rows_with_one_score_a_block(
    alpha: float, length: int
) -> None:
    """Block maxima alone are in the support, so they have the threshold of the whole row."""
    torch.manual_seed(0)
    width = 64 if length > 4096 else length // 8
    scores = torch.full((2000, length), -1e4)
    scores[:, ::width] = torch.randn(2000, length // width) * torch.logspace(-7, 2, 2000)[:, None]
    limits = lower_bound(scores, alpha)
    assert limits is not None
    threshold = solve_power(scores.double(), alpha).threshold
    assert (limits[2] <= threshold).all()


@pytest.mark.parametrize("blocks", [4160, 640])
def test_a_score_that_rounds_onto_the_cut_is_a_candidate(blocks: int) -> None:
    scores = torch.full((1, blocks), -1e6)
    scores[0, :2] = torch.tensor([131072.0, 131072 - 38 / 128])  # 0.3 below is between floats
    block_maxima = scores.unflatten(1, (-1, 64 if blocks > 4096 else blocks // 8)).amax(2)
    found = select(scores, block_maxima, torch.tensor([[131072.0]]), torch.tensor([[-0.3]]))
    assert found is not None
    assert found.position.tolist() == [0, 1]
