"""The output layer: tied and frozen weights, autocast, what it refuses, and `torch.compile`."""

import pytest
import torch
from torch import Tensor, nn

from onmt_entmax.nn.output import OutputLayer
from onmt_entmax.sparse import entmax_loss

# --- weights that the layer shares with an embedding -----------------------------------------


@pytest.fixture
def embedding() -> nn.Embedding:
    return nn.Embedding(60, 8)


@pytest.fixture
def tied(embedding: nn.Embedding) -> OutputLayer:
    """A layer with the weights of the embedding."""
    layer = OutputLayer(8, 60, 1.5)
    layer.weight = embedding.weight
    return layer


@pytest.fixture
def target() -> Tensor:
    return torch.randint(60, (20,))


@pytest.mark.parametrize("dtype", [None, torch.bfloat16], ids=["plain", "autocast"])
def test_tied_weights_have_the_gradient_of_both_uses(
    embedding: nn.Embedding, tied: OutputLayer, target: Tensor, dtype: torch.dtype | None
) -> None:
    with torch.autocast("cpu", dtype=dtype, enabled=dtype is not None):
        loss = tied.loss(embedding(torch.arange(20)), target, -100).loss
    (gradient,) = torch.autograd.grad(loss, embedding.weight)
    scores = tied.scores(embedding(torch.arange(20)))
    expected = entmax_loss(scores, target, reduction="sum")
    (expected_gradient,) = torch.autograd.grad(expected, embedding.weight)
    torch.testing.assert_close(gradient, expected_gradient, atol=1e-5, rtol=1e-5)


def test_frozen_weights_have_no_gradient(
    embedding: nn.Embedding, tied: OutputLayer, target: Tensor
) -> None:
    tied.weight.requires_grad_(False)
    tied.loss(embedding(torch.arange(20)), target, -100).loss.backward()
    assert tied.weight.grad is None
    assert tied.bias.grad is not None


# --- autocast --------------------------------------------------------------------------------


def test_autocast_changes_no_type_of_log_probabilities() -> None:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert OutputLayer(8, 60, 1.5).log_probs(torch.randn(20, 8)).dtype == torch.float32


# --- what is refused -------------------------------------------------------------------------

HIDDEN, TARGET = torch.zeros(2, 8), torch.tensor([1, 10])  # of a vocabulary of 11 tokens


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
    with pytest.raises(ValueError, match="alpha must be a number from 1"):
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
