"""The output layer: its loss against `entmax_loss` of all scores, its search form, its supports."""

import math
from itertools import cycle, product

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import gradcheck

from onmt_entmax.nn import linear_loss
from onmt_entmax.nn import output as output_module
from onmt_entmax.nn.linear_loss import LinearLoss
from onmt_entmax.nn.output import OutputLayer, PreparedOutput
from onmt_entmax.nn.products import nonzero
from onmt_entmax.nn.support import Support, as_support
from onmt_entmax.sparse import entmax_loss, log_entmax
from tests.oracles import loss_oracle


def layer_and_data(
    vocab: int, alpha: float, scale: float, rows: int = 300
) -> tuple[OutputLayer, Tensor, Tensor]:
    """Return a float64 layer, states, and targets of which some are 3."""
    torch.manual_seed(vocab)
    layer = OutputLayer(24, vocab, alpha).double()
    hidden = torch.randn(rows, 24, dtype=torch.float64) * scale
    target = torch.randint(vocab, (rows,))
    target[::7] = 3
    return layer, hidden.requires_grad_(), target


def mixed(layer: OutputLayer, target: Tensor, smoothing: float) -> Tensor:
    """Return the target distributions of label smoothing."""
    vocab = len(layer.weight)
    prior = (
        torch.full((vocab,), 1 / vocab, dtype=torch.float64) if layer.prior is None else layer.prior
    )
    return (1 - smoothing) * nn.functional.one_hot(target, vocab).double() + smoothing * prior


def prior_of(vocab: int) -> Tensor:
    prior = torch.rand(vocab, dtype=torch.float64) ** 9
    prior[::3] = 0
    return prior / prior.sum()


KINDS = [
    (50, 1.0, 0.0, False),
    (776, 0.01, 0.1, True),
    (776, 8.0, 0.2, False),
    (4999, 5.0, 0.0, False),
    (5000, 30.0, 0.1, True),
]


@pytest.mark.parametrize(
    ("alpha", "vocab", "scale", "smoothing", "prior"),
    [
        (alpha, *kind)
        for alpha, kind in zip([1.0, 1.05, 1.33, 1.5, 2.0, 2.5] * 3, cycle(KINDS), strict=False)
    ],
)
def test_loss_counts_and_gradients_are_those_of_all_scores(
    alpha: float,
    vocab: int,
    scale: float,
    smoothing: float,
    prior: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In chunks of 64 rows: small supports, large ones, and in one case both."""
    monkeypatch.setattr(linear_loss, "_LEAST_ROWS", 64)
    monkeypatch.setattr(linear_loss, "_CPU_SCORES", 1)
    layer, hidden, target = layer_and_data(vocab, alpha, scale)
    layer.prior = prior_of(vocab) if prior else None
    with torch.no_grad():
        if vocab == 4999:
            hidden[100:200] *= 1e-3
    tensors = (hidden, layer.weight, layer.bias)
    result = layer.loss(hidden, target, 3, smoothing)
    # Twice, since the backward pass must not overwrite what it reads.
    torch.autograd.grad(result.loss, tensors, retain_graph=True)
    gradients = torch.autograd.grad(result.loss * 0.7, tensors)
    kept = target != 3
    scores = layer.scores(hidden)[kept]
    expected = entmax_loss(scores, mixed(layer, target[kept], smoothing), alpha, reduction="sum")
    torch.testing.assert_close(result.loss, expected, rtol=1e-10, atol=1e-10)
    for ours, theirs in zip(gradients, torch.autograd.grad(expected * 0.7, tensors), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)
    support = (log_entmax(scores, alpha) > -torch.inf).sum()
    correct = (scores.argmax(1) == target[kept]).sum()
    assert [int(x) for x in result[1:]] == [int(kept.sum()), int(correct), int(support)]
    with torch.no_grad():
        quiet = layer.loss(hidden, target, 3, smoothing)
    assert not quiet.loss.requires_grad
    assert all(one == other for one, other in zip(quiet, result, strict=True))
    assert "prior" not in layer.state_dict()


@pytest.mark.parametrize("alpha", [1.0, 1.5, 1.7, 2.0])
def test_loss_is_the_definition_and_its_gradient_the_difference_quotient(alpha: float) -> None:
    layer, hidden, target = layer_and_data(9, alpha, 2.0, rows=6)
    kept = target != 3
    one_hot = mixed(layer, target[kept], 0.0)
    expected = loss_oracle(layer.scores(hidden)[kept].detach(), one_hot, alpha).sum()
    assert float(layer.loss(hidden, target, 3).loss.detach()) == pytest.approx(float(expected))

    def loss(*inputs: Tensor) -> Tensor:
        return LinearLoss.apply(*inputs, target, kept, alpha, 0.1, spread)[0]

    kept[:], spread = True, 0.1 * prior_of(9)
    assert gradcheck(loss, (hidden, layer.weight, layer.bias))


@pytest.mark.parametrize("alpha", [1.0, 1.5])
def test_masked_rows_count_like_rows_left_out(alpha: float) -> None:
    """As on a GPU, where ignored rows keep their place and their states are 0."""
    layer, hidden, target = layer_and_data(50, alpha, 0.1)
    tensors, kept = (hidden, layer.weight, layer.bias), target != 3
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
    losses = layer.loss(single, target, -100, 0.1).loss, exact.loss(hidden, target, -100, 0.1).loss
    assert float(losses[0].detach()) == pytest.approx(float(losses[1].detach()), rel=1e-5)
    ours = torch.autograd.grad(losses[0], (single, layer.weight, layer.bias))
    theirs = torch.autograd.grad(losses[1], (hidden, exact.weight, exact.bias))
    for one, other in zip(ours, theirs, strict=True):
        assert (one.double() - other).abs().max() <= 2e-5 * other.abs().max()


def test_no_row_counts_an_unlikely_or_underflowing_probability_twice() -> None:
    """Targets inside and outside the support, and with the probability 1."""
    layer = OutputLayer(4, 4, 2.0).double()
    with torch.no_grad():
        layer.weight.copy_(torch.eye(4))
        layer.bias.zero_()
    rows = torch.tensor([[3.0, 0, 0, 0], [3.0, 0, 0, 0], [0.5, 0.4, 0, -9]]).double()
    for target, support, correct in (([0, 1, 0], 5, 2), ([0, 0, 3], 5, 2), ([1, 2, 1], 5, 0)):
        result = layer.loss(rows, torch.tensor(target), -1)
        assert (int(result.support), int(result.correct)) == (support, correct)
    layer.alpha = 1.0
    softmax = layer.loss(1000 * rows, torch.tensor([0, 0, 0]), -1)
    assert int(softmax.support) == 12, "probabilities that are rounded to 0 count"


def test_frozen_and_tied_weights_and_autocast() -> None:
    embedding = nn.Embedding(60, 8)
    layer = OutputLayer(8, 60, 1.5)
    layer.weight = embedding.weight
    target = torch.randint(60, (20,))
    gradients = []
    for dtype in (None, torch.bfloat16):
        with torch.autocast("cpu", dtype=dtype, enabled=dtype is not None):
            states = embedding(torch.arange(20))
            assert layer.log_probs(states).dtype == torch.float32
            loss = layer.loss(states, target, -100).loss
        gradients.append(torch.autograd.grad(loss, embedding.weight)[0])
    expected = entmax_loss(layer.scores(embedding(torch.arange(20))), target, reduction="sum")
    gradients.append(torch.autograd.grad(expected, embedding.weight)[0])
    for gradient in gradients[:2]:
        assert torch.allclose(gradient, gradients[2], atol=1e-5)
    layer.weight.requires_grad_(False)
    layer.loss(embedding(torch.arange(20)), target, -100).loss.backward()
    assert layer.weight.grad is None
    assert layer.bias.grad is not None


@pytest.mark.parametrize(("alpha", "rows"), product([1.0, 1.5], [0, 5]))
def test_nothing_but_ignored_targets(alpha: float, rows: int) -> None:
    layer, hidden = OutputLayer(8, 11, alpha), torch.randn(rows, 8, requires_grad=True)
    result = layer.loss(hidden, torch.zeros(rows, dtype=torch.int64), 0, 0.1)
    result.loss.backward()
    assert all(value == 0 for value in result)
    assert not any(x.grad.any() for x in (hidden, layer.weight, layer.bias))


def test_wrong_arguments_are_refused() -> None:
    layer, hidden, target = OutputLayer(8, 11), torch.randn(2, 8), torch.tensor([1, 10])
    for states, classes, smoothing, message in (
        (hidden, torch.tensor([1, 11]), 0.0, "vocabulary of 11"),
        (hidden, target, 2.0, "label_smoothing"),
        (hidden[1:], target, 0.0, "expected hidden"),
        (hidden[None], target, 0.0, "expected hidden"),
    ):
        with pytest.raises(ValueError, match=message):
            layer.loss(states, classes, 0, smoothing)
    with pytest.raises(ValueError, match="32 or 64 bits"):
        OutputLayer(8, 300).bfloat16().loss(hidden, target, -100)
    with pytest.raises(ValueError, match="alpha"):
        OutputLayer(8, 11, 0.9)
    loss = layer.loss(hidden.requires_grad_(), target, 0).loss
    with pytest.raises(RuntimeError, match="gradients of gradients"):
        torch.autograd.grad(loss, hidden, create_graph=True)


def test_compiled_functions_may_contain_the_layer() -> None:
    layer = OutputLayer(8, 700, 1.5)
    hidden, target = torch.randn(6, 8, requires_grad=True), torch.arange(6)
    log_probs = torch.compile(layer.log_probs, fullgraph=True, backend="eager")
    assert torch.allclose(log_probs(hidden).exp(), layer.log_probs(hidden).exp(), atol=1e-6)

    def loss(states: Tensor) -> Tensor:
        return layer.loss(states * 2, target, -100).loss * 3

    values = torch.compile(loss, backend="eager")(hidden), loss(hidden)
    assert torch.allclose(*values)
    assert torch.allclose(*(torch.autograd.grad(value, hidden)[0] for value in values))


@pytest.mark.parametrize("alpha", [1.0, 1.05, 1.2, 1.5, 2.0, 2.5])
@pytest.mark.parametrize(("vocab", "scale"), [(300, 3.0), (5000, 40.0), (5001, 0.01)])
def test_a_search_gets_the_log_probabilities(
    alpha: float, vocab: int, scale: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In several chunks, with the support of `log_entmax` up to rounding."""
    monkeypatch.setattr(output_module, "_SEARCH_SCORES", 7 * vocab)
    exact, hidden, _ = layer_and_data(vocab, alpha, scale, rows=20)
    layer, hidden = exact.float(), hidden.detach().float()
    found = PreparedOutput(layer.weight, layer.bias, alpha)(hidden)
    log_probs = log_entmax(layer.scores(hidden).detach().double(), alpha)
    assert alpha > 1 or isinstance(found, Tensor)
    if isinstance(found, Support):
        key = found.row * found.vocabulary + found.token
        assert (key.diff() > 0).all()
        assert found.log_prob.isfinite().all()
        found = found.dense()
    assert found.shape == log_probs.shape
    found = found.double()
    assert (found.exp() - log_probs.exp()).abs().max() < 2e-5
    differs = (found > -torch.inf) != (log_probs > -torch.inf)
    assert torch.maximum(found, log_probs)[differs].exp().sum() < 1e-9


@pytest.mark.parametrize("alpha", [1.0, 1.5])
def test_invalid_scores_are_treated_as_in_log_entmax(alpha: float) -> None:
    weight, hidden = torch.randn(50, 8), torch.randn(5, 8)
    with pytest.raises(ValueError, match="-inf everywhere"):
        PreparedOutput(weight, torch.full((50,), -math.inf), alpha)(hidden)
    for broken in (torch.nan, 3e38):
        hidden[2] = broken
        found = PreparedOutput(weight, torch.zeros(50), alpha)(hidden)
        support = found if isinstance(found, Support) else as_support(found)
        assert support.row.unique().tolist() == [0, 1, 2, 3, 4], "else it would look empty"
        assert not support.log_prob[support.row == 2].isfinite().any()


@pytest.mark.parametrize("size", [(0, 3), (3, 5), (4, 64)])
@pytest.mark.parametrize("share", [0.0, 0.15, 1.0])
def test_nonzero(size: tuple[int, int], share: float) -> None:
    matrix = torch.randn(size) * (torch.rand(size) < share)
    expected = matrix.flatten().nonzero().squeeze(1)
    for most in (1.0, 0.1):
        places = nonzero(matrix, most)
        if len(expected) > most * matrix.numel():
            assert places is None
        else:
            assert places.equal(expected)
