"""Labels that multi-label classifiers predict."""

import pytest
import torch

from tests.papers.multilabel_examples import LOGISTIC, SOFTMAX, SPARSEMAX
from tools.papers.multilabel_loss import Loss


@pytest.mark.parametrize(
    ("loss", "setting", "expected"),
    [
        pytest.param(LOGISTIC, 0.5, [True, True, False], id="logistic"),
        pytest.param(SOFTMAX, 0.5, [True, False, False], id="softmax"),
        pytest.param(SOFTMAX, 0.05, [True, True, True], id="softmax, a low threshold"),
        pytest.param(SPARSEMAX, 1.0, [True, True, False], id="sparsemax: the support"),
        pytest.param(
            SPARSEMAX, 6.0, [True, False, False], id="sparsemax, scores that are 1.2 apart"
        ),
    ],
)
def test_predicted_labels_are_above_the_threshold_or_in_the_support(
    loss: Loss, setting: float, expected: list[bool]
) -> None:
    """The setting of a sparse loss is a scale of the scores, that of others a threshold."""
    scores = torch.tensor([[1.0, 0.8, -1.0]]).double()
    assert loss.predict(scores, setting).tolist() == [expected]
