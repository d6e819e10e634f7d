"""The mean of `entmax_loss` if the class weights of all targets sum to 0.

A weighted mean divides by that sum. Cross-entropy then is nan; `entmax_loss` does not divide.
"""

import pytest
import torch
from torch.nn.functional import cross_entropy

from onmt_entmax.sparse import entmax_loss
from tests.sparse.loss_cases import WEIGHT, assert_equal_losses_and_gradients, random_scores

TARGET = torch.tensor([2, -100, 2, 2])  # class 2 has weight 0, and -100 is ignored
reductions = pytest.mark.parametrize("reduction", ["sum", "mean"])


def test_cross_entropy_is_nan() -> None:
    assert cross_entropy(random_scores(4, 7), TARGET, weight=WEIGHT).isnan()


@reductions
def test_the_loss_is_0(reduction: str) -> None:
    loss = entmax_loss(random_scores(4, 7), TARGET, 1.0, weight=WEIGHT, reduction=reduction)
    assert loss.item() == 0


@reductions
def test_the_gradient_is_0(reduction: str) -> None:
    scores = random_scores(4, 7)
    loss = entmax_loss(scores, TARGET, 1.0, weight=WEIGHT, reduction=reduction)
    (gradient,) = torch.autograd.grad(loss, scores)
    assert gradient.tolist() == torch.zeros(4, 7).tolist()


@reductions
def test_label_smoothing_gives_the_sum_of_cross_entropy(reduction: str) -> None:
    """Smoothing gives probability to other classes, whose weights are positive."""
    scores, options = random_scores(4, 7), {"weight": WEIGHT, "label_smoothing": 0.1}
    ours = entmax_loss(scores, TARGET, 1.0, reduction=reduction, **options)
    theirs = cross_entropy(scores, TARGET, reduction="sum", **options)
    assert theirs > 0
    assert_equal_losses_and_gradients(ours, theirs, scores)
