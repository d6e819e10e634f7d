"""A row's result is the same in any layout: any head, dimension or number of threads."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from onmt_entmax.sparse import Entmax, entmax, entmax_loss


class TestAlphaOfEachHead:
    """Heads with alphas on both sides of 2; scores are ``(batch, heads, queries, keys)``."""

    ALPHAS = (1.0, 1.2, 1.5, 2.0, 2.5)

    @pytest.fixture
    def alpha(self, device: str) -> Tensor:
        return torch.tensor(self.ALPHAS, device=device).view(5, 1, 1).requires_grad_()

    @pytest.fixture
    def scores(self, device: str) -> Tensor:
        return torch.randn(2, 5, 3, 7, device=device)

    def test_gives_what_the_head_has_alone(self, scores: Tensor, alpha: Tensor) -> None:
        p = entmax(scores, alpha)
        for head, number in enumerate(self.ALPHAS):
            torch.testing.assert_close(p[:, head], entmax(scores[:, head], number))

    def test_has_the_gradient_that_the_head_has_alone(self, scores: Tensor, alpha: Tensor) -> None:
        (gradient,) = torch.autograd.grad(entmax(scores, alpha).square().sum(), alpha)
        for head, number in enumerate(self.ALPHAS):
            alone = torch.full_like(alpha[head], number).requires_grad_()
            p = entmax(scores[:, head], alone)
            torch.testing.assert_close(
                gradient[head], *torch.autograd.grad(p.square().sum(), alone)
            )


@pytest.mark.parametrize("dim", [0, 1, -2])
@pytest.mark.parametrize(
    "function",
    [entmax, lambda scores, alpha, dim: Entmax(alpha, dim)(scores)],
    ids=["function", "module"],
)
def test_any_dimension_is_like_the_last(
    function: Callable[[Tensor, float, int], Tensor], dim: int, device: str
) -> None:
    scores = torch.randn(2, 5, 3, 7, device=device)
    moved = entmax(scores.movedim(dim, -1).contiguous(), 1.5).movedim(-1, dim)
    torch.testing.assert_close(function(scores, 1.5, dim), moved)


class Results(NamedTuple):
    """Results of rows of scores."""

    losses: Tensor
    probabilities: Tensor
    gradient: Tensor
    """Gradient of losses and probabilities together, in the scores."""


@pytest.fixture
def restored_threads() -> Iterator[None]:
    """Give later tests the number of threads that PyTorch had before."""
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


@pytest.mark.usefixtures("restored_threads")
def test_threads_change_nothing() -> None:
    """Rows of scores from close to far apart, whose supports differ, as does the work for them."""
    scores = torch.randn(64, 3000) * torch.logspace(-2, 1, 64).unsqueeze(1)

    def results(threads: int) -> Results:
        torch.set_num_threads(threads)
        z = scores.clone().requires_grad_()
        losses = entmax_loss(z, torch.arange(64), reduction="none")
        p = entmax(z, 1.33)
        return Results(losses, p, *torch.autograd.grad((losses, p), z, (losses, p)))

    several, one = results(3), results(1)
    assert torch.equal(several.losses, one.losses)
    assert torch.equal(several.probabilities, one.probabilities)
    assert torch.equal(several.gradient, one.gradient)
