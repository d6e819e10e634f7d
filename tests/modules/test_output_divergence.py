"""The divergence of two predictions: the losses it is made of, its gradients, groups of rows."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.autograd import gradcheck
from torch.nn import functional

from onmt_entmax.losses import entmax_loss
from onmt_entmax.mappings import entmax, tsallis_entropy
from onmt_entmax.modules import output_divergence
from onmt_entmax.modules.output import OutputLayer
from onmt_entmax.modules.output_divergence import divergence, linear_divergence

ALPHAS = (1.0, 1.3, 1.5, 2.0, 2.5)


def some_scores(*shape: int) -> Tensor:
    return (torch.randn(*shape, dtype=torch.float64) * 2).requires_grad_()


@pytest.mark.parametrize("alpha", ALPHAS)
def test_it_is_the_losses_of_each_against_the_other(alpha: float) -> None:
    z, w = some_scores(6, 7), some_scores(6, 7)
    p, q = entmax(z, alpha), entmax(w, alpha)
    losses = entmax_loss(z, q, alpha, reduction="none") - tsallis_entropy(q, alpha)
    losses = losses + entmax_loss(w, p, alpha, reduction="none") - tsallis_entropy(p, alpha)
    torch.testing.assert_close(divergence(z, w, alpha), losses)


def test_alpha_one_is_both_kullback_leibler_divergences() -> None:
    z, w = some_scores(6, 7), some_scores(6, 7)
    both = [
        functional.kl_div(a.log_softmax(1), b.softmax(1), reduction="none").sum(1)
        for a, b in ((z, w), (w, z))
    ]
    torch.testing.assert_close(divergence(z, w, 1.0), both[0] + both[1])


@given(
    alpha=st.floats(1.0, 3.0),
    seed=st.integers(0, 10_000),
    shift=st.floats(-50, 50),
    scale=st.floats(0.01, 20),
)
def test_never_negative_and_zero_for_the_same_prediction(
    alpha: float, seed: int, shift: float, scale: float
) -> None:
    generator = torch.Generator().manual_seed(seed)
    z, w = (scale * torch.randn(3, 8, generator=generator, dtype=torch.float64) for _ in range(2))
    assert (divergence(z, w, alpha) >= -1e-9).all()
    assert divergence(z, z + shift, alpha).abs().max() < 1e-9 * (1 + abs(shift))
    torch.testing.assert_close(divergence(z, w, alpha), divergence(w, z, alpha))


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("rows", [0, 1, 11])
def test_the_layers_function_is_the_formula(
    alpha: float, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output_divergence, "_SCORES", 36)
    monkeypatch.setattr(output_divergence, "_ROWS", 3)  # several groups, the last of two rows
    layer = OutputLayer(5, 9, alpha).double()
    one, other = some_scores(rows, 5), some_scores(rows, 5)
    inputs = (one, other, layer.weight, layer.bias)
    plain = divergence(layer.scores(one), layer.scores(other), alpha).sum()
    ours = layer.divergence(one, other)
    torch.testing.assert_close(ours, plain)
    expected = torch.autograd.grad(plain * 3, inputs)
    torch.testing.assert_close(torch.autograd.grad(ours * 3, inputs), expected)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_gradients_are_slopes(alpha: float) -> None:
    layer = OutputLayer(4, 6, alpha).double()
    one, other = some_scores(3, 4), some_scores(3, 4)

    inputs = (one, other, layer.weight, layer.bias)
    assert gradcheck(lambda *given: linear_divergence(*given, alpha), inputs)


def test_nothing_to_learn_where_both_are_sure() -> None:
    layer = OutputLayer(2, 5, 1.5).double()
    with torch.no_grad():
        layer.weight.zero_()
        layer.bias.copy_(torch.tensor([9.0, 0, 0, 0, 0]))
    one, other = some_scores(4, 2), some_scores(4, 2)
    total = layer.divergence(one, other)
    assert total == 0
    assert all((g == 0).all() for g in torch.autograd.grad(total, (one, other, layer.weight)))


def test_gradients_of_gradients_are_refused() -> None:
    layer = OutputLayer(8, 11)
    one, other = torch.randn(2, 8, requires_grad=True), torch.randn(2, 8)
    with pytest.raises(RuntimeError, match="gradients of gradients"):
        torch.autograd.grad(layer.divergence(one, other), one, create_graph=True)


def test_classes_outside_both_count_nothing() -> None:
    z, w = torch.tensor([[0.0, 1.0, -torch.inf]]), torch.tensor([[0.1, 1.2, -torch.inf]])
    torch.testing.assert_close(divergence(z, w, 1.5), divergence(z[:, :2], w[:, :2], 1.5))
    z, w = torch.tensor([[5.0, 0.0, -torch.inf]]), torch.tensor([[5.0, 0.0, -9.0]]).requires_grad_()
    between = divergence(z, w, 1.5)
    assert between == 0
    assert torch.autograd.grad(between, w)[0].tolist() == [[0.0, 0.0, 0.0]]


def test_without_gradients() -> None:
    """The same number, in inference mode too."""
    layer = OutputLayer(4, 7, 1.5)
    one, other = torch.randn(3, 4), torch.randn(3, 4)
    expected = layer.divergence(one, other).detach()
    with torch.no_grad():
        torch.testing.assert_close(layer.divergence(one, other), expected)
    with torch.inference_mode():
        torch.testing.assert_close(layer.divergence(one.clone(), other.clone()), expected)
