"""Every implementation of entmax against an algorithm of a paper, and the package entmax."""

from collections.abc import Callable

import entmax as peer
import pytest
import torch
from torch import Tensor

from onmt_entmax.sparse import entmax
from tests.oracles import entmax15_by_sorting


@pytest.mark.parametrize("length", [1, 2, 13, 200])
def test_probabilities_of_1_5_entmax_equal_algorithm_2(length: int, device: str) -> None:
    """1.5-entmax by sorting, in Peters, Niculae and Martins (2019); up to ten machine epsilons."""
    for row in torch.randn(4, length, dtype=torch.float64, device=device) * 2:
        expected = entmax15_by_sorting(row)
        torch.testing.assert_close(entmax(row, 1.5), expected, rtol=0, atol=2e-15)


@pytest.mark.parametrize("length", [1, 2, 13, 200])
@pytest.mark.parametrize(
    ("alpha", "peer_mapping"), [(1.5, peer.entmax15), (2.0, peer.sparsemax)], ids=["1.5", "2.0"]
)
def test_gradients_equal_those_of_entmax_1_3(
    alpha: float, peer_mapping: Callable[..., Tensor], length: int, device: str
) -> None:
    scores, upstream = torch.randn(2, 4, length, dtype=torch.float64, device=device) * 2
    ours, theirs = scores.clone().requires_grad_(), scores.clone().requires_grad_()
    entmax(ours, alpha).backward(upstream)
    peer_mapping(theirs, dim=-1).backward(upstream)
    # Gradients are differences of numbers up to about 10, and sums over up to 200 scores.
    torch.testing.assert_close(ours.grad, theirs.grad, rtol=0, atol=1e-12)
