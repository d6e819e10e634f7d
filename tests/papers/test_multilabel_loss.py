"""Losses of rows with several labels: `tools.papers.multilabel_loss.Loss.losses`."""

import pytest
import torch
from torch import Tensor

from tests.oracles import loss_oracle
from tests.papers.multilabel_examples import ENTMAX, LOGISTIC, SOFTMAX, SPARSEMAX
from tools.papers.multilabel_loss import Loss

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
    of_flags = torch.where(LABELS == 1, probabilities, 1 - probabilities)
    torch.testing.assert_close(LOGISTIC.losses(scores, LABELS), -of_flags.prod(1).log())


def test_the_logistic_loss_takes_rows_without_labels() -> None:
    no_labels = torch.zeros(1, 2, dtype=torch.float64)
    losses = LOGISTIC.losses(torch.zeros(1, 2, dtype=torch.float64), no_labels)
    torch.testing.assert_close(losses, 2 * torch.tensor([2.0], dtype=torch.float64).log())
