"""OutputLayer against a linear layer and the loss of its scores."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from onmt_entmax.nn.output import OutputLayer
from onmt_entmax.sparse.functional import entmax_loss, log_entmax


def layer_and_data(vocab: int, alpha: float, scale: float) -> tuple[OutputLayer, Tensor, Tensor]:
    """Return a float64 layer, 300 states, and targets of which some are 3."""
    layer = OutputLayer(24, vocab, alpha).double()
    hidden = torch.randn(300, 24, dtype=torch.float64) * scale
    target = torch.randint(vocab, (300,))
    target[::7] = 3
    return layer, hidden.requires_grad_(), target


@pytest.mark.parametrize("alpha", [1.0, 1.05, 1.33, 1.5, 2.0, 2.5])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize(
    ("vocab", "scale"),
    [(50, 1.0), (776, 0.01), (776, 8.0), (2000, 0.01), (5000, 30.0), (4999, 5.0)],
)
def test_equals_linear_and_loss(alpha: float, smoothing: float, vocab: int, scale: float) -> None:
    """Loss, counts and all gradients, with small (sparse) and large (dense) supports."""
    layer, hidden, target = layer_and_data(vocab, alpha, scale)
    result = layer.loss(hidden, target, 3, smoothing)
    (result.loss * 0.7).backward()
    tensors = (hidden, layer.weight, layer.bias)
    gradients = [tensor.grad for tensor in tensors]
    for tensor in tensors:
        tensor.grad = None
    scores = functional.linear(hidden, layer.weight, layer.bias)
    loss = entmax_loss(scores, target, alpha, None, 3, "sum", smoothing)
    (loss * 0.7).backward()
    assert torch.allclose(result.loss, loss, rtol=1e-10)
    for gradient, tensor in zip(gradients, tensors, strict=True):
        assert torch.allclose(gradient, tensor.grad, atol=1e-9)
    kept = target != 3
    support = (log_entmax(scores, alpha) > -torch.inf).sum(1)
    assert result.tokens == kept.sum()
    assert result.correct == ((scores.argmax(1) == target) & kept).sum()
    assert result.support == support[kept].sum()


@pytest.mark.parametrize("alpha", [1.0, 1.5, 2.0])
def test_smoothing_by_a_prior_is_the_loss_of_mixed_distributions(alpha: float) -> None:
    layer, hidden, target = layer_and_data(300, alpha, 1.0)
    prior = torch.rand(300, dtype=torch.float64) ** 9
    prior[::3] = 0
    layer.prior = prior / prior.sum()
    layer.loss(hidden, target, -1, 0.2).loss.backward()
    result = layer.loss(hidden, target, -1, 0.2).loss
    tensors = (hidden, layer.weight, layer.bias)
    gradients = [tensor.grad for tensor in tensors]
    for tensor in tensors:
        tensor.grad = None
    mixed = 0.8 * functional.one_hot(target, 300).double() + 0.2 * layer.prior
    loss = entmax_loss(layer.scores(hidden), mixed, alpha, reduction="sum")
    loss.backward()
    assert torch.allclose(result, loss, rtol=1e-10)
    for gradient, tensor in zip(gradients, tensors, strict=True):
        assert torch.allclose(gradient, tensor.grad, atol=1e-9)
    assert "prior" not in layer.state_dict()


@pytest.mark.parametrize("scale", [0.01, 3.0, 30.0])
@pytest.mark.parametrize("alpha", [1.0, 1.5])
def test_float32_is_as_exact_as_pytorch(scale: float, alpha: float) -> None:
    """Loss and gradients in float32, by oneDNN, against float64."""
    torch.manual_seed(3)
    layer = OutputLayer(40, 5000, alpha)
    hidden, target = torch.randn(300, 40) * scale, torch.randint(5000, (300,))
    grads, losses = [], []
    for dtype in (torch.float32, torch.float64):
        states = hidden.to(dtype).requires_grad_()
        tensors = (states, *(p.detach().to(dtype).requires_grad_() for p in layer.parameters()))
        twin = OutputLayer(40, 5000, alpha).to(dtype)
        twin.weight, twin.bias = nn.Parameter(tensors[1]), nn.Parameter(tensors[2])
        loss = twin.loss(states, target, -100, 0.1).loss
        grads.append(torch.autograd.grad(loss, (states, twin.weight, twin.bias)))
        losses.append(loss)
    assert torch.allclose(losses[0].double(), losses[1], rtol=1e-5)
    for single, double in zip(*grads, strict=True):
        assert (single.double() - double).abs().max() <= 2e-5 * double.abs().max()


def test_backward_twice_gives_the_same() -> None:
    """No saved tensor is overwritten, whether the support is sparse or dense."""
    for scale in (0.01, 30.0):
        layer, hidden, target = layer_and_data(5000, 1.5, scale)
        loss = layer.loss(hidden, target, 3).loss
        first = torch.autograd.grad(loss, (hidden, layer.weight, layer.bias), retain_graph=True)
        second = torch.autograd.grad(loss, (hidden, layer.weight, layer.bias))
        assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def test_sparse_and_dense_rows_in_one_group() -> None:
    layer, hidden, target = layer_and_data(5000, 1.5, 30.0)
    factor = torch.where(torch.arange(300) % 2 == 0, 1e-4, 1.0).unsqueeze(1).double()
    states = (hidden * factor).detach().requires_grad_()
    layer.loss(states, target, -100).loss.backward()
    ours = [states.grad, layer.weight.grad]
    states.grad = layer.weight.grad = None
    entmax_loss(layer.scores(states), target, 1.5, reduction="sum").backward()
    assert torch.allclose(ours[0], states.grad, atol=1e-9)
    assert torch.allclose(ours[1], layer.weight.grad, atol=1e-9)


def test_wrong_shapes_are_refused() -> None:
    layer, hidden, target = layer_and_data(776, 1.5, 3.0)
    for states, targets in ((hidden[1:], target), (hidden, target[1:]), (hidden[None], target)):
        with pytest.raises(ValueError, match="expected hidden"):
            layer.loss(states, targets, int(target[0]))


def test_without_gradients() -> None:
    layer, hidden, target = layer_and_data(776, 1.5, 3.0)
    with torch.no_grad():
        quiet = layer.loss(hidden, target, 3)
    loud = layer.loss(hidden, target, 3)
    assert not quiet.loss.requires_grad
    assert loud.loss.requires_grad
    assert all(a == b for a, b in zip(quiet, loud, strict=True))


def test_frozen_parts_get_no_gradient() -> None:
    layer, hidden, target = layer_and_data(776, 1.5, 3.0)
    layer.weight.requires_grad_(False)
    layer.loss(hidden, target, 3).loss.backward()
    assert layer.weight.grad is None
    assert hidden.grad is not None
    assert layer.bias.grad is not None


def test_tied_weights_collect_both_gradients() -> None:
    embedding = nn.Embedding(60, 8)
    layer = OutputLayer(8, 60, 1.5)
    layer.weight = embedding.weight
    target = torch.randint(60, (20,))
    layer.loss(embedding(torch.arange(20)), target, -100).loss.backward()
    ours = embedding.weight.grad.clone()
    embedding.weight.grad = None
    scores = embedding(torch.arange(20)) @ embedding.weight.t() + layer.bias
    entmax_loss(scores, target, 1.5, reduction="sum").backward()
    assert torch.allclose(ours, embedding.weight.grad, atol=1e-5)


@pytest.mark.parametrize("alpha", [1.0, 1.5])
def test_all_ignored_and_empty(alpha: float) -> None:
    layer = OutputLayer(8, 11, alpha)
    for rows in (5, 0):
        hidden = torch.randn(rows, 8, requires_grad=True)
        result = layer.loss(hidden, torch.zeros(rows, dtype=torch.int64), 0)
        result.loss.backward()
        assert all(value == 0 for value in result)
        assert (hidden.grad == 0).all()
        assert (layer.weight.grad == 0).all()


def test_fresh_weights_are_those_of_a_linear_layer() -> None:
    layer = OutputLayer(64, 3000)
    for fresh in (layer.weight, layer.bias):
        assert 0.99 / 8 < float(fresh.detach().abs().max()) <= 1 / 8


def test_scores_and_log_probabilities() -> None:
    layer = OutputLayer(8, 11, 1.5)
    hidden = torch.randn(2, 3, 8)
    scores = functional.linear(hidden, layer.weight, layer.bias)
    assert torch.equal(layer.scores(hidden), scores)
    assert torch.equal(layer.log_probs(hidden), log_entmax(scores, 1.5))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert layer.scores(hidden.bfloat16()).dtype == torch.float32
        loss = layer.loss(hidden.flatten(0, 1), torch.zeros(6, dtype=torch.int64), -100).loss
    assert torch.allclose(loss, entmax_loss(scores.flatten(0, 1), torch.zeros(6).long(), 1.5) * 6)


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="alpha"):
        OutputLayer(8, 11, 0.9)
    layer = OutputLayer(8, 11)
    with pytest.raises(ValueError, match="vocabulary of 11"):
        layer.loss(torch.randn(2, 8), torch.tensor([1, 11]), 0)
    with pytest.raises(ValueError, match="label_smoothing"):
        layer.loss(torch.randn(1, 8), torch.tensor([1]), 0, 2.0)
    hidden = torch.randn(2, 8, requires_grad=True)
    loss = layer.loss(hidden, torch.tensor([1, 2]), 0).loss
    with pytest.raises(RuntimeError, match="gradients of gradients"):
        torch.autograd.grad(loss, hidden, create_graph=True)


def test_half_weights_are_refused() -> None:
    layer = OutputLayer(8, 300).bfloat16()
    with pytest.raises(ValueError, match="needs weights of 32 or 64 bits"):
        layer.loss(torch.zeros(2, 8), torch.tensor([1, 2]), -100)
