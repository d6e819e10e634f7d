"""Counts of the output layer's loss: supports, and correct and ignored targets."""

import pytest
import torch
from torch import Tensor

from onmt_entmax.nn.output import OutputLayer, OutputLoss

IGNORED = -1  # a target that no row has
# The scores of three rows. Under sparsemax, the first token has all probability in two of them; in
# the last row, the first three tokens share it.
SCORES = torch.tensor([[3.0, 0, 0, 0], [3.0, 0, 0, 0], [0.5, 0.4, 0, -9]]).double()
SUPPORT = 1 + 1 + 3


@pytest.fixture
def layer() -> OutputLayer:
    """A layer with sparsemax whose scores are its states."""
    layer = OutputLayer(4, 4, alpha=2.0).double()
    with torch.no_grad():
        layer.weight.copy_(torch.eye(4))
        layer.bias.zero_()
    return layer


@pytest.mark.parametrize(
    "target",
    [
        pytest.param([0, 1, 0], id="inside, outside, inside the support"),
        pytest.param([0, 0, 3], id="all of the support, again, outside"),
        pytest.param([1, 2, 1], id="outside, outside, inside"),
    ],
)
def test_the_support_does_not_depend_on_the_targets(layer: OutputLayer, target: list[int]) -> None:
    """It is counted in the gradient, which may be zero at a target of positive probability."""
    assert int(layer.loss(SCORES, torch.tensor(target), IGNORED).support) == SUPPORT


@pytest.mark.parametrize(
    ("target", "correct"),
    [
        pytest.param([0, 1, 0], 2, id="the first and the last"),
        pytest.param([1, 2, 1], 0, id="none, though one is in the support"),
    ],
)
def test_a_target_is_correct_if_it_has_the_largest_score(
    layer: OutputLayer, target: list[int], correct: int
) -> None:
    assert int(layer.loss(SCORES, torch.tensor(target), IGNORED).correct) == correct


def test_probabilities_of_softmax_that_are_rounded_to_0_are_in_the_support(
    layer: OutputLayer,
) -> None:
    layer.alpha = 1.0
    result = layer.loss(1000 * SCORES, torch.tensor([0, 0, 0]), IGNORED)
    assert int(result.support) == SCORES.numel()


# --- batches in which no target counts -------------------------------------------------------


@pytest.fixture(params=[1.0, 1.5], ids=["softmax", "entmax"])
def random_layer(request: pytest.FixtureRequest) -> OutputLayer:
    return OutputLayer(8, 11, alpha=request.param)


@pytest.fixture(params=[5, 0], ids=["five rows", "no rows"])
def hidden(request: pytest.FixtureRequest) -> Tensor:
    return torch.randn(request.param, 8, requires_grad=True)


@pytest.fixture
def loss_of_nothing(random_layer: OutputLayer, hidden: Tensor) -> OutputLoss:
    """The smoothed loss of rows whose targets are all ignored, after its backward pass."""
    target = torch.zeros(len(hidden), dtype=torch.int64)
    result = random_layer.loss(hidden, target, ignore_index=0, label_smoothing=0.1)
    result.loss.backward()
    return result


def test_ignored_targets_have_no_loss_and_no_counts(loss_of_nothing: OutputLoss) -> None:
    assert [value.item() for value in loss_of_nothing] == [0, 0, 0, 0]


@pytest.mark.usefixtures("loss_of_nothing")
def test_ignored_targets_have_gradients_of_zero(random_layer: OutputLayer, hidden: Tensor) -> None:
    for tensor in (hidden, random_layer.weight, random_layer.bias):
        assert not tensor.grad.any()
