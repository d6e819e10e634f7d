"""Gradients of entmax and log_entmax, in the scores and in alpha, first and second."""

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from onmt_entmax.sparse import entmax, log_entmax

ALPHAS = (1.0, 1.0001, 1.05, 1.2, 1.33, 1.5, 1.8, 2.0, 2.5)


def scores(*shape: int) -> Tensor:
    return (torch.randn(*shape, dtype=torch.float64) * 2).requires_grad_()


def finite_logs(z: Tensor, alpha: float | Tensor, dim: int = -1) -> Tensor:
    """Log-probabilities with 0 for -inf, which finite differences can be taken of."""
    return log_entmax(z, alpha, dim).nan_to_num(neginf=0.0)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("dim", [-1, 0, 1])
def test_in_scores(alpha: float, dim: int) -> None:
    z = scores(2, 3, 4)
    assert gradcheck(lambda x: entmax(x, alpha, dim), z)
    assert gradcheck(lambda x: finite_logs(x, alpha, dim), z)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_of_gradients(alpha: float) -> None:
    z = scores(3, 6)
    assert gradgradcheck(lambda x: entmax(x, alpha), z)
    assert gradgradcheck(lambda x: finite_logs(x, alpha), z)


@pytest.mark.parametrize("low", [1.001, 1.2, 1.5, 1.99, 2.4])
def test_in_alpha(low: float) -> None:
    z = scores(2, 3, 4)
    alpha = (low + 0.1 * torch.rand(3, 1, dtype=torch.float64)).requires_grad_()
    assert gradcheck(entmax, (z, alpha))
    assert gradcheck(finite_logs, (z, alpha))
    assert gradgradcheck(entmax, (z, alpha))


def test_in_alpha_at_one() -> None:
    """The limit of Proposition 1 of Correia et al. (2019), and a difference quotient beside it."""
    z = scores(4, 6)
    alpha = torch.ones((), dtype=torch.float64, requires_grad=True)
    p = torch.softmax(z, -1).detach()
    bend = p * p.log() ** 2 / 2
    expected = p * bend.sum(-1, keepdim=True) - bend
    weights = torch.randn(4, 6, dtype=torch.float64)
    (entmax(z, alpha) * weights).sum().backward()
    assert alpha.grad == pytest.approx(float((expected * weights).sum()), rel=1e-10)
    quotient = (entmax(z, 1 + 1e-6) - p) / 1e-6
    assert torch.allclose(quotient, expected, atol=1e-5)


def test_alpha_per_head_equals_head_by_head() -> None:
    z = torch.randn(2, 3, 4, 7)
    alpha = torch.tensor([1.0, 1.5, 2.0]).view(3, 1, 1).requires_grad_()
    result = entmax(z, alpha)
    for head, number in enumerate((1.0, 1.5, 2.0)):
        assert torch.allclose(result[:, head], entmax(z[:, head], number), atol=1e-6)
    result.square().sum().backward()
    assert alpha.grad.shape == alpha.shape
    assert alpha.grad.isfinite().all()


@pytest.mark.parametrize("alpha", [1.33, 1.5, 2.0, 2.5])
@pytest.mark.parametrize("spread", [0.02, 1.0, 5.0])
@pytest.mark.parametrize("length", [700, 5003])
def test_long_rows_equal_short_ones(alpha: float, spread: float, length: int) -> None:
    """Rows long enough for the search for candidates have the gradients of the plain method."""
    z = (torch.randn(100, length, dtype=torch.float64) * spread).requires_grad_()
    weights = torch.randn(100, length, dtype=torch.float64)
    result = entmax(z, alpha)
    (grad,) = torch.autograd.grad((result * weights).sum(), z, create_graph=True)
    (second,) = torch.autograd.grad(grad.square().sum(), z)
    # One row at a time there are too few scores to search.
    some = z.detach()[:8].requires_grad_()
    rows = torch.cat([entmax(row, alpha) for row in some.split(1)])
    (plain,) = torch.autograd.grad((rows * weights[:8]).sum(), some, create_graph=True)
    (plain_second,) = torch.autograd.grad(plain.square().sum(), some)
    assert torch.allclose(result[:8], rows, atol=1e-12)
    assert torch.allclose(grad[:8], plain, atol=1e-9)
    scale = plain_second.abs().max().clamp_min(1.0)
    assert torch.allclose(second[:8] / scale, plain_second / scale, atol=1e-6)


@pytest.mark.parametrize("alpha", [1.0, 1.5, 2.0])
def test_masked_scores_get_no_gradient(alpha: float) -> None:
    for masked in (-float("inf"), -1e18):
        z = torch.tensor([[0.1, masked, 0.4, masked]], requires_grad=True)
        (entmax(z, alpha) * torch.randn(1, 4)).sum().backward()
        assert z.grad.isfinite().all()
        assert (z.grad[0, [1, 3]] == 0).all()


@pytest.mark.parametrize("alpha", [1.0, 1.05, 1.5, 2.0, 3.0])
@pytest.mark.parametrize(("rows", "length"), [(3, 10), (110, 600)])
@pytest.mark.parametrize("spread", [0.01, 8.0])
def test_several_gradients_at_once(alpha: float, rows: int, length: int, spread: float) -> None:
    z = (torch.randn(rows, length) * spread).requires_grad_()
    result, arriving = entmax(z, alpha), torch.randn(3, rows, length)
    batch = torch.autograd.grad(result, z, arriving, retain_graph=True, is_grads_batched=True)[0]
    for several, one in zip(batch, arriving, strict=True):
        alone = torch.autograd.grad(result, z, one, retain_graph=True)[0]
        # Above alpha 2 small probabilities make large gradients.
        assert (several - alone).abs().max() <= 1e-5 * alone.abs().max().clamp_min(1.0)


@pytest.mark.parametrize("alpha", [1.3, 2.0, 2.5])
def test_what_arrives_outside_the_support_does_not_reach_alpha(alpha: float) -> None:
    z = (5 * torch.randn(4, 7, dtype=torch.float64)).requires_grad_()
    alphas = torch.full((4, 1), alpha, dtype=torch.float64, requires_grad=True)
    logs = log_entmax(z, alphas)
    outside = torch.isneginf(logs)
    assert outside.any()
    nothing, bad = (torch.where(outside, value, 1.0) for value in (0.0, float("inf")))
    expected = torch.autograd.grad(logs, (z, alphas), nothing, retain_graph=True)
    for one, other in zip(torch.autograd.grad(logs, (z, alphas), bad), expected, strict=True):
        assert one.equal(other)


@pytest.mark.parametrize("alpha", [1.3, 1.5, 3.0])
def test_tensors_that_are_not_what_lies_in_memory(alpha: float) -> None:
    """PyTorch makes such by itself: imaginary parts of conjugates, gradients that are 0."""
    plain = torch.tensor([1.0, 2.0, 3.0])
    assert torch.allclose(entmax(torch._neg_view(plain), alpha), entmax(-plain, alpha))
    z = torch.randn(3, 5, requires_grad=True)
    nothing = torch._efficientzerotensor((3, 5))
    assert not torch.autograd.grad(entmax(z, alpha), z, nothing)[0].any()


@pytest.mark.parametrize("function", [entmax, log_entmax])
def test_alphas_on_both_sides_of_two_in_one_call(function) -> None:
    """Each row as alone with its number; weights of alpha 20 are infinite in float32."""
    torch.manual_seed(0)
    numbers = (1.0, 1.5, 2.0, 2.5, 20.0)
    alpha = torch.tensor(numbers).repeat(40).unsqueeze(1)
    z = (torch.randn(200, 10) / alpha).requires_grad_()
    arriving = torch.randn(200, 10)
    result = function(z, alpha)
    (grad,) = torch.autograd.grad(result, z, arriving)
    for place, number in enumerate(numbers):
        rows = slice(place, None, len(numbers))
        alone = z.detach()[rows].requires_grad_()
        expected = function(alone, number)
        values, wanted = result.detach()[rows], expected.detach()
        compared = torch.ones(len(alone), dtype=torch.bool)
        if function is log_entmax:
            # An error of the threshold changes a logarithm by p ** (1 - alpha) times as much.
            assert torch.equal(values == -torch.inf, wanted == -torch.inf)
            weights = wanted.exp() ** (number - 1)
            values, wanted = (x.nan_to_num(neginf=0.0) * weights for x in (values, wanted))
            # It changes gradients likewise: leave rows out that amplify it more than 100 times.
            compared = torch.where(weights > 0, weights, 1.0).amin(1) > 0.01
        assert torch.allclose(values, wanted, rtol=1e-5, atol=1e-6)
        (expected_grad,) = torch.autograd.grad(expected, alone, arriving[rows])
        assert expected_grad.isfinite().all()
        scale = expected_grad.abs().amax(1, keepdim=True)
        close = (grad[rows] - expected_grad).abs() <= 1e-3 * scale
        assert close[compared].all(), number
