"""Which implementation solves the rows of an alpha above 2 on a CPU."""

import pytest
import torch
from torch import Tensor

from onmt_entmax.sparse import backends, entmax, reference
from onmt_entmax.sparse.backends import cpu


@pytest.mark.skipif(cpu.module is None, reason="not built")
@pytest.mark.parametrize(
    "alpha", [2.5, 1e6, torch.tensor([[3.0]])], ids=["2.5", "a large alpha", "a learned alpha"]
)
def test_rows_on_a_cpu_are_solved_in_cpp(alpha: float | Tensor) -> None:
    assert backends.backend_for(torch.zeros(1, 2), alpha) is cpu


def test_rows_of_an_enormous_alpha_are_solved_by_pytorch() -> None:
    scores = torch.zeros(1, 2)
    assert backends.backend_for(scores, 1e30) is reference
    torch.testing.assert_close(entmax(scores, 1e30), torch.full((1, 2), 0.5))
