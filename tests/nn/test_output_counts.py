"""Counts of the output layer's loss: supports, and correct and ignored targets."""

from itertools import product

import pytest
import torch
from torch import Tensor

from onmt_entmax.nn.output import OutputLayer


@pytest.fixture
def sparsemax_scores() -> tuple[OutputLayer, Tensor]:
    """A layer whose scores are its states, and states with supports of one, one and three."""
    layer = OutputLayer(4, 4, 2.0).double()
    with torch.no_grad():
        layer.weight.copy_(torch.eye(4))
        layer.bias.zero_()
    return layer, torch.tensor([[3.0, 0, 0, 0], [3.0, 0, 0, 0], [0.5, 0.4, 0, -9]]).double()


@pytest.mark.parametrize(
    ("target", "correct"),
    [
        pytest.param([0, 1, 0], 2, id="inside, outside, inside the support"),
        pytest.param([0, 0, 3], 2, id="with probability 1, and outside"),
        pytest.param([1, 2, 1], 0, id="outside, and not the largest"),
    ],
)
def test_no_row_counts_a_token_of_its_support_twice(
    sparsemax_scores: tuple[OutputLayer, Tensor], target: list[int], correct: int
) -> None:
    layer, rows = sparsemax_scores
    result = layer.loss(rows, torch.tensor(target), -1)
    assert (int(result.support), int(result.correct)) == (1 + 1 + 3, correct)


def test_probabilities_of_softmax_that_are_rounded_to_0_count(
    sparsemax_scores: tuple[OutputLayer, Tensor],
) -> None:
    layer, rows = sparsemax_scores
    layer.alpha = 1.0
    result = layer.loss(1000 * rows, torch.tensor([0, 0, 0]), -1)
    assert int(result.support) == rows.numel()


@pytest.mark.parametrize(("alpha", "rows"), product([1.0, 1.5], [0, 5]))
def test_ignored_targets_have_no_loss_nor_gradients(alpha: float, rows: int) -> None:
    layer, hidden = OutputLayer(8, 11, alpha), torch.randn(rows, 8, requires_grad=True)
    result = layer.loss(hidden, torch.zeros(rows, dtype=torch.int64), 0, 0.1)
    result.loss.backward()
    assert all(value == 0 for value in result)
    assert not any(x.grad.any() for x in (hidden, layer.weight, layer.bias))
