"""Averages of F1 over the labels of multi-label data, beside scikit-learn's."""

import pytest
import torch
from torch import Tensor

from tools.papers import multilabel_f1


@pytest.fixture(params=range(5))
def flags(request: pytest.FixtureRequest) -> tuple[Tensor, Tensor]:
    """Labels and predictions of six rows, bool `(6, 5)`."""
    generator = torch.Generator().manual_seed(request.param)
    labels, predicted = (torch.rand(6, 5, generator=generator) < 0.3 for _ in range(2))
    return labels, predicted


@pytest.mark.parametrize(("average", "name"), [("micro", "micro_f1"), ("macro", "label_mean_f1")])
def test_f1_is_that_of_scikit_learn(flags: tuple[Tensor, Tensor], average: str, name: str) -> None:
    from sklearn.metrics import f1_score  # takes a second

    expected = f1_score(*flags, average=average, zero_division=0)
    assert multilabel_f1.f1(*flags)[name] == pytest.approx(100 * expected)


def test_macro_f1_is_that_of_mean_precision_and_recall(flags: tuple[Tensor, Tensor]) -> None:
    from sklearn.metrics import precision_recall_fscore_support  # takes a second

    precision, recall, _, _ = precision_recall_fscore_support(
        *flags, average="macro", zero_division=0
    )
    expected = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    assert multilabel_f1.f1(*flags)["macro_f1"] == pytest.approx(100 * expected)
