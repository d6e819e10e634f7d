"""The support of output layers, in a search and outside, against `log_entmax`."""

import math

import pytest
import torch
from torch import Tensor, nn

from onmt_entmax.nn.output import OutputLayer, PreparedOutput
from onmt_entmax.nn.support import Support, as_support, find_support, join_supports, sent_support
from onmt_entmax.sparse.functional import log_entmax


def layer_and_states(vocab: int, alpha: float, scale: float) -> tuple[OutputLayer, Tensor]:
    """Return a float32 layer with a few frequent tokens, and 300 states."""
    torch.manual_seed(vocab)
    layer = OutputLayer(64, vocab, alpha).requires_grad_(False)
    layer.bias.copy_(-0.5 * torch.rand(vocab).mul_(vocab).add_(1).log())
    return layer, torch.tanh(torch.randn(300, 64)) * scale


def support_of(layer: OutputLayer, hidden: Tensor) -> Support:
    """Return the support that a search finds, from all logarithms if it computes these."""
    given = PreparedOutput(layer.weight, layer.bias, layer.alpha)(hidden)
    return given if isinstance(given, Support) else as_support(given)


def check_equal(support: Support, scores: Tensor, alpha: float) -> None:
    """Compare with float64: probabilities, and the support up to rounding."""
    expected = log_entmax(scores.double(), alpha)
    found = support.dense().double()
    assert (found.exp() - expected.exp()).abs().max() < 2e-5
    differs = (found > -torch.inf) != (expected > -torch.inf)
    assert torch.maximum(found, expected)[differs].exp().sum() < 1e-9
    assert (support.row.diff() >= 0).all()
    key = support.row * support.vocabulary + support.token
    assert (key.diff() > 0).all()
    assert support.log_prob.isfinite().all()


@pytest.mark.parametrize("alpha", [1.05, 1.2, 1.5, 2.0, 2.5])
@pytest.mark.parametrize(("vocab", "scale"), [(300, 3.0), (700, 9.0), (5000, 9.0), (5001, 0.01)])
def test_the_support_is_that_of_log_entmax(alpha, vocab, scale, monkeypatch) -> None:
    monkeypatch.setattr("onmt_entmax.nn.support._LEAST_SCORES", 1)
    layer, hidden = layer_and_states(vocab, alpha, scale)
    hidden = hidden[:20]
    scores = layer.scores(hidden)
    support = support_of(layer, hidden)
    assert (support.rows, support.vocabulary) == scores.shape
    check_equal(support, scores, alpha)


def test_only_peaked_rows_are_returned_as_a_support() -> None:
    for scale, kind in ((9.0, Support), (0.01, Tensor)):
        layer, hidden = layer_and_states(5000, 1.5, scale)
        assert isinstance(PreparedOutput(layer.weight, torch.zeros(5000), 1.5)(hidden), kind)


def test_groups_with_and_without_support_are_joined_densely(monkeypatch) -> None:
    monkeypatch.setattr("onmt_entmax.nn.output._SEARCH_GROUP_SCORES", 5000 * 50)
    layer, hidden = layer_and_states(5000, 1.5, 9.0)
    hidden[100:150] = 0
    layer.bias.zero_()
    given = PreparedOutput(layer.weight, layer.bias, 1.5)(hidden)
    assert isinstance(given, Tensor)
    expected = log_entmax(layer.scores(hidden), 1.5)
    assert (given.exp() - expected.exp()).abs().max() < 2e-6


def test_softmax_is_the_same_in_groups(monkeypatch) -> None:
    layer, hidden = layer_and_states(5000, 1.0, 9.0)
    whole = PreparedOutput(layer.weight, layer.bias, 1.0)(hidden)
    monkeypatch.setattr("onmt_entmax.nn.output._SEARCH_GROUP_SCORES", 5000 * 64)
    parts = PreparedOutput(layer.weight, layer.bias, 1.0)
    assert torch.allclose(parts(hidden), whole, atol=1e-5)
    assert torch.allclose(whole, log_entmax(layer.scores(hidden), 1.0), atol=1e-5)
    layer.bias.fill_(-math.inf)
    with pytest.raises(ValueError, match="-inf everywhere"):
        parts(hidden)


def test_invalid_scores_are_treated_as_in_log_entmax() -> None:
    layer, hidden = layer_and_states(5000, 1.5, 9.0)
    layer.bias.fill_(-math.inf)
    with pytest.raises(ValueError, match="-inf everywhere"):
        support_of(layer, hidden)
    layer.bias.fill_(math.nan)
    assert support_of(layer, hidden).log_prob.isnan().all()
    assert support_of(layer, hidden[:0]).dense().shape == (0, 5000)


def test_supports_are_joined_row_by_row() -> None:
    scores = 6 * torch.randn(90, 3000)
    parts = [find_support(scores[a : a + 30], 1.5) for a in (0, 30, 60)]
    whole = find_support(scores, 1.5)
    assert all(isinstance(part, Support) for part in parts)
    assert torch.allclose(join_supports(parts).dense().exp(), whole.dense().exp(), atol=1e-6)


def test_weight_tying_and_autocast() -> None:
    embedding = nn.Embedding(5000, 64)
    layer = OutputLayer(64, 5000, 1.5)
    layer.weight = embedding.weight
    hidden = embedding(torch.arange(200)) * 5
    with torch.autocast("cpu", dtype=torch.bfloat16):
        log_probs = layer.log_probs(hidden.bfloat16())
    assert log_probs.dtype == torch.float32
    check_equal(as_support(log_probs.detach()), layer.scores(hidden.bfloat16()), 1.5)


@pytest.mark.parametrize("alpha", [1.0, 1.5])
def test_log_probabilities_compile_to_one_graph(alpha: float) -> None:
    layer = OutputLayer(8, 700, alpha)
    hidden = torch.randn(6, 8, requires_grad=True)
    compiled = torch.compile(layer.log_probs, fullgraph=True, backend="eager")
    assert torch.allclose(compiled(hidden).exp(), layer.log_probs(hidden).exp(), atol=1e-6)
    (compiled(hidden).exp() ** 2).sum().backward()
    ours, hidden.grad = hidden.grad, None
    (layer.log_probs(hidden).exp() ** 2).sum().backward()
    assert torch.allclose(ours, hidden.grad, atol=1e-5)


def test_the_loss_runs_inside_a_compiled_function() -> None:
    """The loss breaks the graph, since it depends on the data; the rest is compiled."""
    layer = OutputLayer(8, 700, 1.5)
    hidden, target = torch.randn(6, 8, requires_grad=True), torch.arange(6)

    def loss(states: Tensor) -> Tensor:
        return layer.loss(states * 2, target, -100).loss * 3

    with pytest.raises(torch._dynamo.exc.Unsupported):
        torch.compile(loss, fullgraph=True, backend="eager")(hidden)
    compiled = torch.compile(loss, backend="eager")(hidden)
    assert torch.allclose(compiled, loss(hidden))
    gradients = [torch.autograd.grad(value, hidden)[0] for value in (compiled, loss(hidden))]
    assert torch.allclose(*gradients)


def test_no_rows_have_an_empty_support() -> None:
    found = PreparedOutput(torch.randn(50, 8), torch.zeros(50), 1.5)(torch.empty(0, 8))
    assert isinstance(found, Support)
    assert (found.rows, found.vocabulary, len(found.token)) == (0, 50, 0)


def test_nan_rows_keep_entries() -> None:
    """Otherwise they would look like empty distributions."""
    layer, hidden = OutputLayer(8, 50, 1.5), torch.randn(5, 8)
    for broken in (torch.nan, 3e38):
        hidden[2] = broken
        found = support_of(layer, hidden)
        assert found.row.unique().tolist() == [0, 1, 2, 3, 4]
        assert not found.log_prob[found.row == 2].isfinite().any()


@pytest.mark.parametrize("vocab", [3, 16, 17, 400])
@pytest.mark.parametrize("wide", [0, 2])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_gpu_sends_the_support_of_each_row(vocab: int, wide: int, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    scores = 9 * torch.randn(50, vocab)
    scores[[7, 30][:wide]] *= 0.01
    log_probs = log_entmax(scores, 1.5).to(dtype)
    found, expected = sent_support(log_probs), as_support(log_probs)
    assert isinstance(found, Support)
    assert found[:2] == expected[:2]
    for mine, wanted in zip(found[2:], expected[2:], strict=True):
        assert mine.to(wanted.dtype).equal(wanted)


def test_a_gpu_sends_nan_and_no_large_supports() -> None:
    log_probs = torch.full((40, 20), -torch.inf)
    log_probs[:, 3] = 0
    log_probs[1] = torch.nan
    found = sent_support(log_probs)
    assert isinstance(found, Support)
    assert int(found.log_prob.isnan().sum()) == 20
    assert sent_support(torch.zeros(40, 20)).shape == (40, 20)
    none = sent_support(torch.empty(0, 20))
    assert isinstance(none, Support)
    assert not len(none.row)
