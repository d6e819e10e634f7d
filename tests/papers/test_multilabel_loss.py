"""Losses of rows with several labels: `tools.papers.multilabel_loss.Loss.losses`."""

import math

import pytest
import torch
from torch import Tensor

from tests.oracles import loss_oracle
from tests.papers.multilabel_examples import ENTMAX, LOGISTIC, SOFTMAX, SPARSEMAX
from tools.papers.multilabel_loss import Loss

# Labels of four rows: one, two, three and all of them.
LABELS = torch.tensor(
    [
        [1, 0, 0, 0],
        [1, 1, 0, 0],
        [0, 1, 1, 1],
        [1, 1, 1, 1],
    ],
    dtype=torch.float64,
)


@pytest.fixture
def scores() -> Tensor:
    """Return random scores of the rows of `LABELS`, with which sparse mappings have zeros."""
    return 2 * torch.randn(LABELS.shape, dtype=torch.float64)


@pytest.mark.parametrize("loss", [SOFTMAX, ENTMAX, SPARSEMAX], ids=lambda loss: loss.name)
def test_an_entmax_loss_has_the_uniform_distribution_over_a_rows_labels_as_its_target(
    loss: Loss, scores: Tensor
) -> None:
    target = LABELS / LABELS.sum(1, keepdim=True)
    torch.testing.assert_close(loss.losses(scores, LABELS), loss_oracle(scores, target, loss.alpha))


def test_the_logistic_loss_is_the_negative_log_probability_of_all_labels(scores: Tensor) -> None:
    probabilities = 1 / (1 + torch.exp(-scores))
    of_labels = torch.where(LABELS == 1, probabilities, 1 - probabilities)
    torch.testing.assert_close(LOGISTIC.losses(scores, LABELS), -of_labels.prod(1).log())


def test_the_logistic_loss_takes_rows_without_labels() -> None:
    """At a score of 0, each of the two labels is missing with probability 1/2."""
    zeros = torch.zeros(1, 2, dtype=torch.float64)
    assert LOGISTIC.losses(scores=zeros, labels=zeros).tolist() == pytest.approx([2 * math.log(2)])
