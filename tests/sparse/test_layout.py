"""A row's result is the same for any head with its own alpha, and in any dimension."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from onmt_entmax.sparse import Entmax, entmax

ALPHAS = (1.0, 1.2, 1.5, 2.0, 2.5)  # of five heads, on both sides of 2


@pytest.fixture
def head_alphas(device: str) -> Tensor:
    """The alphas ``(heads, 1, 1)``."""
    return torch.tensor(ALPHAS, device=device).view(5, 1, 1).requires_grad_()


@pytest.fixture
def scores(device: str) -> Tensor:
    """Scores ``(batch, heads, queries, keys)``."""
    return torch.randn(2, 5, 3, 7, device=device)


def test_a_head_has_the_probabilities_that_it_has_alone(
    scores: Tensor, head_alphas: Tensor
) -> None:
    p = entmax(scores, head_alphas)
    for head, alpha in enumerate(ALPHAS):
        torch.testing.assert_close(p[:, head], entmax(scores[:, head], alpha))


def test_the_alpha_of_a_head_has_the_gradient_that_it_has_alone(
    scores: Tensor, head_alphas: Tensor
) -> None:
    (gradient,) = torch.autograd.grad(entmax(scores, head_alphas).square().sum(), head_alphas)
    for head, alpha in enumerate(ALPHAS):
        alone = torch.full_like(head_alphas[head], alpha).requires_grad_()
        p = entmax(scores[:, head], alone)
        (expected,) = torch.autograd.grad(p.square().sum(), alone)
        torch.testing.assert_close(gradient[head], expected)


@pytest.mark.parametrize("dim", [0, 1, -2])
@pytest.mark.parametrize(
    "function",
    [entmax, lambda scores, alpha, dim: Entmax(alpha, dim)(scores)],
    ids=["function", "module"],
)
def test_any_dimension_is_like_the_last(
    function: Callable[[Tensor, float, int], Tensor], dim: int, scores: Tensor
) -> None:
    moved = entmax(scores.movedim(dim, -1).contiguous(), 1.5).movedim(-1, dim)
    torch.testing.assert_close(function(scores, 1.5, dim), moved)
