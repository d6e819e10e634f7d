"""`Entmax` and `EntmaxLoss`, the mapping and its loss as modules; alpha may be a parameter."""

import pytest
import torch
from torch import Tensor, nn

from onmt_entmax.sparse import Entmax, EntmaxLoss, entmax, entmax_loss


def test_the_module_of_the_mapping_computes_the_function() -> None:
    scores = torch.randn(3, 5)
    assert Entmax(1.5, dim=0)(scores).equal(entmax(scores, 1.5, dim=0))


def test_the_module_of_the_loss_computes_the_function() -> None:
    scores, target = torch.randn(3, 5), torch.tensor([0, 4, 2])
    loss = EntmaxLoss(alpha=1.5, reduction="sum")
    assert loss(scores, target).equal(entmax_loss(scores, target, 1.5, reduction="sum"))


class OnePlusSigmoid(nn.Module):
    """A parametrization: alpha from 1 to 2."""

    def forward(self, original: Tensor) -> Tensor:
        return 1 + original.sigmoid()


@pytest.fixture
def alpha() -> nn.Parameter:
    """Two learned alphas of 1.5, one for each of two rows."""
    return nn.Parameter(torch.full((2, 1), 1.5))


def test_an_alpha_that_is_a_parameter_becomes_one_of_the_module(alpha: nn.Parameter) -> None:
    assert list(Entmax(alpha).parameters()) == [alpha]


def test_an_alpha_that_is_a_parameter_gets_its_gradient(alpha: nn.Parameter) -> None:
    scores = torch.randn(2, 5)
    (gradient,) = torch.autograd.grad(Entmax(alpha)(scores).square().sum(), alpha)
    (expected,) = torch.autograd.grad(entmax(scores, alpha).square().sum(), alpha)
    assert gradient.all()
    assert torch.equal(gradient, expected)


def test_the_mapping_shows_the_shape_of_a_learned_alpha(alpha: nn.Parameter) -> None:
    assert repr(Entmax(alpha)) == "Entmax(alpha=tensor(2, 1), dim=-1)"


def test_the_loss_shows_the_shape_of_a_learned_alpha(alpha: nn.Parameter) -> None:
    assert "alpha=tensor(2, 1)" in repr(EntmaxLoss(alpha))


def test_a_learned_alpha_may_be_parametrized(alpha: nn.Parameter) -> None:
    """At -99, the parametrization gives alpha 1: softmax."""
    layer = Entmax(alpha)
    nn.utils.parametrize.register_parametrization(layer, "alpha", OnePlusSigmoid())
    with torch.no_grad():
        layer.parametrizations["alpha"].original.fill_(-99)
    torch.testing.assert_close(layer(torch.eye(2)), torch.eye(2).softmax(-1))
