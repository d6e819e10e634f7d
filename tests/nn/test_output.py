"""The loss of the output layer, against `entmax_loss` of all scores at once."""

from itertools import cycle
from typing import NamedTuple

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import gradcheck

from onmt_entmax.nn import linear_loss
from onmt_entmax.nn.linear_loss import LinearLoss, LossTargets
from onmt_entmax.nn.output import OutputLayer, OutputLoss
from onmt_entmax.sparse import entmax_loss, log_entmax
from tests.nn.output_data import IGNORED, layer_and_data
from tests.oracles import loss_oracle


def smoothed_targets(layer: OutputLayer, target: Tensor, smoothing: float) -> Tensor:
    """Return the target distributions ``(rows, V)`` of label smoothing."""
    vocab = len(layer.weight)
    uniform = torch.full((vocab,), 1 / vocab, dtype=torch.float64)
    prior = uniform if layer.prior is None else layer.prior
    return (1 - smoothing) * nn.functional.one_hot(target, vocab).double() + smoothing * prior


def prior_without_every_third(vocab: int) -> Tensor:
    """Return a random distribution ``(V,)`` in which every third token has probability 0."""
    prior = torch.rand(vocab, dtype=torch.float64) ** 9
    prior[::3] = 0
    return prior / prior.sum()


class Kind(NamedTuple):
    """A kind of output layer and of its rows.

    Attributes:
        vocab: number of tokens.
        scale: standard deviation of the states; the larger, the smaller supports are.
        smoothing: of the targets.
        has_prior: whether smoothing is by a prior, else it is uniform.
        has_near_uniform_rows: whether a third of the rows have small scores, and so large supports.
    """

    vocab: int
    scale: float
    smoothing: float = 0.0
    has_prior: bool = False
    has_near_uniform_rows: bool = False


KINDS = [
    Kind(50, 1.0),
    Kind(776, 0.01, smoothing=0.1, has_prior=True),
    Kind(776, 8.0, smoothing=0.2),
    Kind(4999, 5.0, has_near_uniform_rows=True),
    Kind(5000, 30.0, smoothing=0.1, has_prior=True),
]
ALPHAS = [1.0, 1.05, 1.33, 1.5, 2.0, 2.5]
CASES = [
    pytest.param((alpha, kind), id=f"{alpha}, vocabulary {kind.vocab}, scale {kind.scale}")
    # 18 cases: each alpha has three of the five kinds, and neighbouring alphas have different ones.
    for alpha, kind in zip(3 * ALPHAS, cycle(KINDS), strict=False)
]


class Data(NamedTuple):
    """An output layer, states, and targets of which some are ignored."""

    layer: OutputLayer
    hidden: Tensor
    """``(rows, size)``."""
    target: Tensor
    """``(rows,)``."""
    smoothing: float

    @property
    def is_counted(self) -> Tensor:
        """Whether the target of a row counts, ``(rows,)``."""
        return self.target != IGNORED

    def counted_scores(self) -> Tensor:
        """Return the scores of the rows that count, ``(counted, V)``."""
        return self.layer.scores(self.hidden)[self.is_counted]

    def gradients(self, loss: Tensor) -> tuple[Tensor, ...]:
        """Return the gradients of 0.7 times a loss with respect to states, weight and bias."""
        inputs = (self.hidden, self.layer.weight, self.layer.bias)
        # The backward pass runs twice, since it must not overwrite what it reads.
        torch.autograd.grad(loss, inputs, retain_graph=True)
        return torch.autograd.grad(0.7 * loss, inputs, retain_graph=True)


@pytest.fixture(params=CASES)
def data(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Data:
    """Random states and targets, whose loss is computed in chunks of 64 rows."""
    monkeypatch.setattr(linear_loss, "_CPU_SCORES", 1)  # so that a chunk has the least size
    monkeypatch.setattr(linear_loss, "_LEAST_ROWS", 64)
    alpha, kind = request.param
    layer, hidden, target = layer_and_data(kind.vocab, alpha, kind.scale)
    layer.prior = prior_without_every_third(kind.vocab) if kind.has_prior else None
    if kind.has_near_uniform_rows:
        with torch.no_grad():
            hidden[100:200] *= 1e-3
    return Data(layer, hidden, target, kind.smoothing)


@pytest.fixture
def result(data: Data) -> OutputLoss:
    """The loss of the layer, with its counts."""
    return data.layer.loss(data.hidden, data.target, IGNORED, data.smoothing)


@pytest.fixture
def expected(data: Data) -> Tensor:
    """The loss of all scores at once, by `entmax_loss`."""
    smoothed = smoothed_targets(data.layer, data.target[data.is_counted], data.smoothing)
    return entmax_loss(data.counted_scores(), smoothed, data.layer.alpha, reduction="sum")


def test_the_loss_is_that_of_all_scores(result: OutputLoss, expected: Tensor) -> None:
    torch.testing.assert_close(result.loss, expected, rtol=1e-10, atol=1e-10)


def test_gradients_are_those_of_all_scores(
    data: Data, result: OutputLoss, expected: Tensor
) -> None:
    gradients = data.gradients(result.loss)
    torch.testing.assert_close(gradients, data.gradients(expected), rtol=1e-9, atol=1e-9)


def test_tokens_correct_ones_and_supports_are_counted(data: Data, result: OutputLoss) -> None:
    scores, target = data.counted_scores(), data.target[data.is_counted]
    support = (log_entmax(scores, data.layer.alpha) > -torch.inf).sum()
    correct = (scores.argmax(1) == target).sum()
    assert (result.tokens, result.correct, result.support) == (len(target), correct, support)


def test_without_gradients_the_loss_and_counts_are_the_same(data: Data, result: OutputLoss) -> None:
    with torch.no_grad():
        without_gradients = data.layer.loss(data.hidden, data.target, IGNORED, data.smoothing)
    assert without_gradients == result


# --- small layers ----------------------------------------------------------------------------


def test_without_gradients_the_loss_has_no_graph() -> None:
    layer, hidden, target = layer_and_data(9, 1.5, 2.0, rows=6)
    with torch.no_grad():
        loss = layer.loss(hidden, target, IGNORED).loss
    assert not loss.requires_grad


def test_a_prior_is_not_a_weight() -> None:
    layer, _, _ = layer_and_data(9, 1.5, 2.0, rows=6)
    layer.prior = prior_without_every_third(9)
    assert layer.state_dict().keys() == {"weight", "bias"}


of_some_alphas = pytest.mark.parametrize("alpha", [1.0, 1.5, 1.7, 2.0])


@of_some_alphas
def test_the_loss_is_the_definition(alpha: float) -> None:
    layer, hidden, target = layer_and_data(9, alpha, 2.0, rows=6)
    is_counted = target != IGNORED
    one_hot = smoothed_targets(layer, target[is_counted], smoothing=0.0)
    expected = loss_oracle(layer.scores(hidden)[is_counted].detach(), one_hot, alpha).sum()
    loss = layer.loss(hidden, target, IGNORED).loss
    assert float(loss.detach()) == pytest.approx(float(expected))


@of_some_alphas
def test_gradients_equal_finite_differences(alpha: float) -> None:
    """The loss is smoothed by a prior."""
    layer, hidden, target = layer_and_data(9, alpha, 2.0, rows=6)
    smoothing = 0.1
    targets = LossTargets(
        target,
        is_counted=torch.ones(len(target), dtype=torch.bool),
        smoothing=smoothing,
        spread=smoothing * prior_without_every_third(9),
    )

    def smoothed_loss(*inputs: Tensor) -> Tensor:
        return LinearLoss.apply(*inputs, targets, alpha)[0]

    assert gradcheck(smoothed_loss, (hidden, layer.weight, layer.bias))


@pytest.mark.parametrize(
    ("alpha", "vocab", "scale"),
    [
        pytest.param(1.0, 50, 0.1, id="softmax, dense products"),
        pytest.param(1.5, 50, 0.1, id="entmax, dense products"),
        pytest.param(2.0, 776, 30.0, id="sparsemax, sparse products"),
    ],
)
def test_masked_rows_count_like_rows_left_out(alpha: float, vocab: int, scale: float) -> None:
    """On a GPU, ignored rows keep their place, and their states are 0."""
    layer, hidden, target = layer_and_data(vocab, alpha, scale)
    is_counted, smoothing = target != IGNORED, 0.1
    spread = smoothing * prior_without_every_third(vocab)

    def result(states: Tensor, classes: Tensor, counted: Tensor) -> tuple[Tensor, ...]:
        """Return loss, counts, and the gradients with respect to hidden, weight and bias."""
        targets = LossTargets(classes, counted, smoothing, spread)
        loss, counts = LinearLoss.apply(states, layer.weight, layer.bias, targets, alpha)
        return loss, counts, *torch.autograd.grad(loss, (hidden, layer.weight, layer.bias))

    masked_states = hidden.masked_fill(~is_counted.unsqueeze(1), 0)
    masked = result(masked_states, target.masked_fill(~is_counted, 0), is_counted)
    left_out = result(hidden[is_counted], target[is_counted], is_counted[is_counted])
    torch.testing.assert_close(masked, left_out)


@pytest.mark.parametrize("alpha", [1.0, 1.5, 2.0])
@pytest.mark.parametrize("scale", [0.01, 30.0])
def test_float32_agrees_with_float64(alpha: float, scale: float) -> None:
    exact, hidden, target = layer_and_data(5000, alpha, scale)
    layer = OutputLayer(24, 5000, alpha)
    layer.load_state_dict(exact.state_dict())
    exact.load_state_dict(layer.state_dict())  # both have the weights that float32 rounded
    single = hidden.detach().float().requires_grad_()
    hidden = single.detach().double().requires_grad_()
    loss = layer.loss(single, target, -100, label_smoothing=0.1).loss
    expected = exact.loss(hidden, target, -100, label_smoothing=0.1).loss
    assert float(loss.detach()) == pytest.approx(float(expected.detach()), rel=1e-5)
    gradients = torch.autograd.grad(loss, (single, layer.weight, layer.bias))
    expected_gradients = torch.autograd.grad(expected, (hidden, exact.weight, exact.bias))
    for gradient, other in zip(gradients, expected_gradients, strict=True):
        assert (gradient.double() - other).abs().max() <= 2e-5 * other.abs().max()
