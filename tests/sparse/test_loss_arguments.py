"""Arguments that `entmax_loss` refuses."""

from typing import Any

import pytest
import torch

from onmt_entmax.sparse import entmax_loss

CLASSES = 4
ARGUMENTS: dict[str, Any] = {"scores": torch.randn(2, CLASSES), "target": torch.tensor([0, 1])}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param({"alpha": 0.5}, "alpha must be a number from 1", id="alpha below 1"),
        pytest.param({"reduction": "max"}, "reduction", id="an unknown reduction"),
        pytest.param(
            {"label_smoothing": 1.5}, "label_smoothing", id="more smoothing than probability"
        ),
        pytest.param({"weight": torch.ones(3)}, "weight", id="too few weights"),
        pytest.param(
            {"weight": torch.ones(CLASSES, requires_grad=True)},
            "weight has no gradient",
            id="learned weights",
        ),
        pytest.param(
            {"target": torch.tensor([0, 9])}, "not a class from 0 to 3", id="an unknown class"
        ),
        pytest.param({"target": torch.tensor([0, 1, 2])}, "does not fit", id="too many targets"),
        pytest.param(
            {"target": torch.rand(2, 3)}, "does not fit", id="too few classes of a distribution"
        ),
        pytest.param({"scores": torch.tensor(1.0)}, "dimension", id="a number for scores"),
        pytest.param(
            {"scores": torch.full((2, CLASSES), -float("inf"))},
            "-inf everywhere",
            id="no class is possible",
        ),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        entmax_loss(**ARGUMENTS | arguments)
