"""Gradients of attention with entmax, first and second, against finite differences."""

from itertools import cycle

import pytest
import torch
from torch import Tensor

from onmt_entmax import entmax_attention
from tests.sparse.attention_inputs import (
    INF,
    KINDS,
    Numbers,
    alpha_of,
    has_numbers,
    inputs,
    leaves,
    masks,
    options,
)

ALPHAS = (1.0, 1.0001, 1.2, 1.33, 1.5, 1.9999, 2.0, 2.5, 3.5)
KINDS_OF_NUMBERS = ("bias", "holes")
KINDS_OF_CONSTANTS = tuple(kind for kind in KINDS if kind not in KINDS_OF_NUMBERS)
# Each alpha with two masks, since 9 alphas are no multiple of 7 kinds, and each mask with several.
PAIRS = list(zip(ALPHAS * 2, cycle(KINDS)))


@pytest.mark.parametrize(
    ("alpha", "kind"), [pair for pair in PAIRS if pair[1] in KINDS_OF_CONSTANTS]
)
def test_in_query_key_and_value(alpha: float, kind: str) -> None:
    tensors = leaves(inputs(3, 2, queries=3, keys=4, dtype=torch.float64))
    mask = masks(3, 4)[kind]

    def attention(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return entmax_attention(query, key, value, alpha=alpha, **options(mask))

    assert torch.autograd.gradcheck(attention, tensors)


@pytest.mark.parametrize(("alpha", "kind"), [pair for pair in PAIRS if pair[1] in KINDS_OF_NUMBERS])
def test_in_query_key_value_and_mask(alpha: float, kind: str) -> None:
    mask = masks(3, 4)[kind]
    assert isinstance(mask, Tensor)
    assert has_numbers(mask)
    tensors = leaves([*inputs(3, 2, queries=3, keys=4, dtype=torch.float64), mask.double()])

    def attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor) -> Tensor:
        return entmax_attention(query, key, value, alpha=alpha, attn_mask=attn_mask)

    assert torch.autograd.gradcheck(attention, tensors)


@pytest.mark.parametrize(
    ("alpha", "kind"), [((1.1, 1.6), "none"), ((1.9, 2.4), "causal"), ((1.001, 3.0), "random")]
)
def test_in_alpha(alpha: tuple[float, ...], kind: str) -> None:
    alphas = torch.tensor(alpha, dtype=torch.float64)
    tensors = leaves([*inputs(3, 2, queries=3, keys=4, dtype=torch.float64), alphas])
    mask = masks(3, 4)[kind]

    def attention(query: Tensor, key: Tensor, value: Tensor, alpha: Tensor) -> Tensor:
        return entmax_attention(query, key, value, alpha=alpha, **options(mask))

    assert torch.autograd.gradcheck(attention, tensors)


def test_in_alpha_at_softmax_continues_that_above() -> None:
    """At alpha = 1 there is no difference quotient from below."""
    query, key, value = inputs(3, 2, dtype=torch.float64)

    def gradient(number: float) -> Tensor:
        alpha = torch.tensor([number, number], dtype=torch.float64, requires_grad=True)
        return torch.autograd.grad(entmax_attention(query, key, value, alpha=alpha).sum(), alpha)[0]

    torch.testing.assert_close(gradient(1.0), gradient(1 + 1e-7), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("alpha", [1.5, 2.0, (1.2, 1.7)])
def test_second_derivatives(alpha: Numbers) -> None:
    form = alpha_of(alpha, torch.float64)
    tensors = leaves(inputs(2, queries=2, keys=3, dtype=torch.float64))
    assert torch.autograd.gradgradcheck(
        lambda *arguments: entmax_attention(*arguments, alpha=form), tensors
    )


@pytest.mark.parametrize("alpha", [1.0, 1.5, 2.5, (1.0, 1.6)])
class TestQueriesWithoutKeys:
    """All but the first two of five."""

    @pytest.fixture
    def arguments(self, alpha: Numbers) -> list[Tensor]:
        """Query, key, value, what the mask adds to, and alpha if it is a tensor."""
        form = alpha_of(alpha)
        alphas = [form] if isinstance(form, Tensor) else []
        return leaves([*inputs(3, 2), torch.zeros(5, 7), *alphas])

    @pytest.fixture
    def output(self, arguments: list[Tensor], alpha: Numbers) -> Tensor:
        query, key, value, added, *alphas = arguments
        mask = added + torch.where(torch.arange(5) < 2, 0.0, -INF).view(5, 1)
        form = alphas[0] if alphas else alpha
        return entmax_attention(query, key, value, alpha=form, attn_mask=mask)

    def test_give_zeros(self, output: Tensor) -> None:
        assert (output[..., 2:, :] == 0).all()

    def test_leave_others_alone(self, output: Tensor) -> None:
        assert (output[..., :2, :] != 0).all()

    def test_pass_no_gradient_on(self, output: Tensor, arguments: list[Tensor]) -> None:
        gradients = torch.autograd.grad(output[..., 2:, :].sum(), arguments)
        assert not any(gradient.any() for gradient in gradients)

    def test_leave_gradients_of_others_finite(
        self, output: Tensor, arguments: list[Tensor]
    ) -> None:
        gradients = torch.autograd.grad(output.sum(), arguments)
        assert all(gradient.isfinite().all() for gradient in gradients)
