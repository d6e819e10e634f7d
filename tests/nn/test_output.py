"""The loss of the output layer, against `entmax_loss` of all scores at once."""

from itertools import cycle, product
from typing import NamedTuple

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import gradcheck

from onmt_entmax.nn import linear_loss
from onmt_entmax.nn.linear_loss import LinearLoss
from onmt_entmax.nn.output import OutputLayer, OutputLoss
from onmt_entmax.sparse import entmax_loss, log_entmax
from tests.nn.output_data import IGNORED, layer_and_data
from tests.oracles import loss_oracle


def mixed(layer: OutputLayer, target: Tensor, smoothing: float) -> Tensor:
    """Return the target distributions ``(rows, V)`` of label smoothing."""
    vocab = len(layer.weight)
    uniform = torch.full((vocab,), 1 / vocab, dtype=torch.float64)
    prior = uniform if layer.prior is None else layer.prior
    return (1 - smoothing) * nn.functional.one_hot(target, vocab).double() + smoothing * prior


def prior_of(vocab: int) -> Tensor:
    """Return a random distribution ``(V,)`` without every third token."""
    prior = torch.rand(vocab, dtype=torch.float64) ** 9
    prior[::3] = 0
    return prior / prior.sum()


# --- loss, counts and gradients --------------------------------------------------------------


class Kind(NamedTuple):
    """A vocabulary, the size of its scores, which decides that of supports, and smoothing."""

    vocab: int
    scale: float
    smoothing: float = 0.0
    has_prior: bool = False
    has_near_uniform_rows: bool = False
    """Whether a third of the rows have small scores, and so large supports."""


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
    for alpha, kind in zip(3 * ALPHAS, cycle(KINDS), strict=False)  # three kinds for each alpha
]


class Losses(NamedTuple):
    """The loss of a layer in chunks of 64 rows, and of all scores at once."""

    layer: OutputLayer
    result: OutputLoss
    gradients: tuple[Tensor, ...]
    """Of 0.7 times the loss, in states, weight and bias."""
    without_gradients: OutputLoss
    expected: Tensor
    expected_gradients: tuple[Tensor, ...]
    scores: Tensor
    """Of the rows whose target counts, ``(rows, V)``."""
    target: Tensor
    """Of these rows."""


@pytest.fixture(scope="module", params=CASES)
def losses(request: pytest.FixtureRequest) -> Losses:
    alpha, kind = request.param
    layer, hidden, target = layer_and_data(kind.vocab, alpha, kind.scale)
    layer.prior = prior_of(kind.vocab) if kind.has_prior else None
    if kind.has_near_uniform_rows:
        with torch.no_grad():
            hidden[100:200] *= 1e-3
    tensors = (hidden, layer.weight, layer.bias)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(linear_loss, "_CPU_SCORES", 1)  # the number of rows is the least one
        patch.setattr(linear_loss, "_LEAST_ROWS", 64)
        result = layer.loss(hidden, target, IGNORED, kind.smoothing)
        with torch.no_grad():
            without_gradients = layer.loss(hidden, target, IGNORED, kind.smoothing)
    # Twice, since the backward pass must not overwrite what it reads.
    torch.autograd.grad(result.loss, tensors, retain_graph=True)
    gradients = torch.autograd.grad(result.loss * 0.7, tensors)
    kept = target != IGNORED
    scores, classes = layer.scores(hidden)[kept], target[kept]
    expected = entmax_loss(scores, mixed(layer, classes, kind.smoothing), alpha, reduction="sum")
    expected_gradients = torch.autograd.grad(expected * 0.7, tensors)
    return Losses(
        layer=layer,
        result=result,
        gradients=gradients,
        without_gradients=without_gradients,
        expected=expected,
        expected_gradients=expected_gradients,
        scores=scores,
        target=classes,
    )


def test_the_loss_is_that_of_all_scores(losses: Losses) -> None:
    torch.testing.assert_close(losses.result.loss, losses.expected, rtol=1e-10, atol=1e-10)


def test_gradients_are_those_of_all_scores(losses: Losses) -> None:
    torch.testing.assert_close(losses.gradients, losses.expected_gradients, rtol=1e-9, atol=1e-9)


def test_tokens_correct_ones_and_supports_are_counted(losses: Losses) -> None:
    support = (log_entmax(losses.scores, losses.layer.alpha) > -torch.inf).sum()
    correct = (losses.scores.argmax(1) == losses.target).sum()
    tokens = len(losses.target)
    counts = (losses.result.tokens, losses.result.correct, losses.result.support)
    assert counts == (tokens, correct, support)


def test_without_gradients_the_loss_is_the_same(losses: Losses) -> None:
    assert losses.without_gradients == losses.result


def test_without_gradients_the_loss_has_no_graph(losses: Losses) -> None:
    assert not losses.without_gradients.loss.requires_grad


def test_a_prior_is_no_weight(losses: Losses) -> None:
    assert losses.layer.state_dict().keys() == {"weight", "bias"}


@pytest.mark.parametrize("alpha", [1.0, 1.5, 1.7, 2.0])
def test_loss_is_the_definition_and_its_gradient_the_difference_quotient(alpha: float) -> None:
    layer, hidden, target = layer_and_data(9, alpha, 2.0, rows=6)
    kept = target != IGNORED
    one_hot = mixed(layer, target[kept], smoothing=0.0)
    expected = loss_oracle(layer.scores(hidden)[kept].detach(), one_hot, alpha).sum()
    loss = layer.loss(hidden, target, IGNORED).loss
    assert float(loss.detach()) == pytest.approx(float(expected))

    counted = torch.ones(len(target), dtype=torch.bool)
    smoothing = 0.1
    spread = smoothing * prior_of(9)

    def smoothed_loss(*inputs: Tensor) -> Tensor:
        return LinearLoss.apply(*inputs, target, counted, alpha, smoothing, spread)[0]

    assert gradcheck(smoothed_loss, (hidden, layer.weight, layer.bias))


@pytest.mark.parametrize("alpha", [1.0, 1.5])
def test_masked_rows_count_like_rows_left_out(alpha: float) -> None:
    """On a GPU, ignored rows keep their place, and their states are 0."""
    layer, hidden, target = layer_and_data(50, alpha, 0.1)
    tensors, kept = (hidden, layer.weight, layer.bias), target != IGNORED
    spread = 0.1 * prior_of(50)
    results = [
        LinearLoss.apply(states, *tensors[1:], classes, counted, alpha, 0.1, spread)
        for states, classes, counted in (
            (hidden.masked_fill(~kept.unsqueeze(1), 0), target.masked_fill(~kept, 0), kept),
            (hidden[kept], target[kept], kept[kept]),
        )
    ]
    assert results[0][1].equal(results[1][1])
    torch.testing.assert_close(results[0][0], results[1][0])
    gradients = [torch.autograd.grad(loss, tensors) for loss, _ in results]
    torch.testing.assert_close(*gradients)


@pytest.mark.parametrize("alpha", [1.0, 1.5, 2.0])
@pytest.mark.parametrize("scale", [0.01, 30.0])
def test_float32_agrees_with_float64(alpha: float, scale: float) -> None:
    exact, hidden, target = layer_and_data(5000, alpha, scale)
    layer = OutputLayer(24, 5000, alpha)
    layer.load_state_dict(exact.state_dict())
    exact.load_state_dict(layer.state_dict())
    single = hidden.detach().float().requires_grad_()
    hidden = single.detach().double().requires_grad_()
    our_loss = layer.loss(single, target, -100, 0.1).loss
    their_loss = exact.loss(hidden, target, -100, 0.1).loss
    assert float(our_loss.detach()) == pytest.approx(float(their_loss.detach()), rel=1e-5)
    ours = torch.autograd.grad(our_loss, (single, layer.weight, layer.bias))
    theirs = torch.autograd.grad(their_loss, (hidden, exact.weight, exact.bias))
    for one, other in zip(ours, theirs, strict=True):
        assert (one.double() - other).abs().max() <= 2e-5 * other.abs().max()


# --- counts of special rows ------------------------------------------------------------------


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


# --- tied and frozen weights, autocast -------------------------------------------------------


class TestTiedWeights:
    @pytest.fixture
    def embedding(self) -> nn.Embedding:
        return nn.Embedding(60, 8)

    @pytest.fixture
    def layer(self, embedding: nn.Embedding) -> OutputLayer:
        layer = OutputLayer(8, 60, 1.5)
        layer.weight = embedding.weight
        return layer

    @pytest.fixture
    def target(self) -> Tensor:
        return torch.randint(60, (20,))

    @pytest.mark.parametrize("dtype", [None, torch.bfloat16], ids=["plain", "autocast"])
    def test_have_the_gradient_of_both_uses(
        self,
        embedding: nn.Embedding,
        layer: OutputLayer,
        target: Tensor,
        dtype: torch.dtype | None,
    ) -> None:
        with torch.autocast("cpu", dtype=dtype, enabled=dtype is not None):
            loss = layer.loss(embedding(torch.arange(20)), target, -100).loss
        (gradient,) = torch.autograd.grad(loss, embedding.weight)
        scores = layer.scores(embedding(torch.arange(20)))
        expected = entmax_loss(scores, target, reduction="sum")
        (expected_gradient,) = torch.autograd.grad(expected, embedding.weight)
        torch.testing.assert_close(gradient, expected_gradient, atol=1e-5, rtol=1e-5)

    def test_that_are_frozen_have_no_gradient(
        self, embedding: nn.Embedding, layer: OutputLayer, target: Tensor
    ) -> None:
        layer.weight.requires_grad_(False)
        layer.loss(embedding(torch.arange(20)), target, -100).loss.backward()
        assert layer.weight.grad is None
        assert layer.bias.grad is not None


def test_autocast_changes_no_type_of_log_probabilities() -> None:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert OutputLayer(8, 60, 1.5).log_probs(torch.randn(20, 8)).dtype == torch.float32


# --- what is refused -------------------------------------------------------------------------


HIDDEN, TARGET = torch.zeros(2, 8), torch.tensor([1, 10])


@pytest.mark.parametrize(
    ("hidden", "target", "smoothing", "message"),
    [
        pytest.param(HIDDEN, torch.tensor([1, 11]), 0.0, "vocabulary of 11", id="large target"),
        pytest.param(HIDDEN, TARGET, 2.0, "label_smoothing", id="smoothing above 1"),
        pytest.param(HIDDEN[1:], TARGET, 0.0, "expected hidden", id="fewer states"),
        pytest.param(HIDDEN[None], TARGET, 0.0, "expected hidden", id="other dimensions"),
    ],
)
def test_wrong_arguments_are_refused(
    hidden: Tensor, target: Tensor, smoothing: float, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        OutputLayer(8, 11).loss(hidden, target, 0, smoothing)


def test_weights_of_16_bits_are_refused() -> None:
    with pytest.raises(ValueError, match="32 or 64 bits"):
        OutputLayer(8, 300).bfloat16().loss(HIDDEN, TARGET, -100)


def test_an_alpha_below_1_is_refused() -> None:
    with pytest.raises(ValueError, match="alpha"):
        OutputLayer(8, 11, 0.9)


def test_gradients_of_gradients_are_refused() -> None:
    hidden = torch.randn(2, 8, requires_grad=True)
    loss = OutputLayer(8, 11).loss(hidden, TARGET, 0).loss
    with pytest.raises(RuntimeError, match="gradients of gradients"):
        torch.autograd.grad(loss, hidden, create_graph=True)


# --- torch.compile ---------------------------------------------------------------------------


def test_compiled_functions_may_contain_the_log_probabilities() -> None:
    layer, hidden = OutputLayer(8, 700, 1.5), torch.randn(6, 8)
    log_probs = torch.compile(layer.log_probs, fullgraph=True, backend="eager")
    torch.testing.assert_close(
        log_probs(hidden).exp(), layer.log_probs(hidden).exp(), atol=1e-6, rtol=0
    )


def test_compiled_functions_may_contain_the_loss() -> None:
    layer = OutputLayer(8, 700, 1.5)
    hidden, target = torch.randn(6, 8, requires_grad=True), torch.arange(6)

    def loss(states: Tensor) -> Tensor:
        return layer.loss(states * 2, target, -100).loss * 3

    values = torch.compile(loss, backend="eager")(hidden), loss(hidden)
    torch.testing.assert_close(*values)
    torch.testing.assert_close(*(torch.autograd.grad(value, hidden)[0] for value in values))
