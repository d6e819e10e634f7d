"""Gradients of attention with entmax, first and second, and of queries without keys."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from onmt_entmax import entmax_attention
from tests.sparse.attention_inputs import (
    ALPHAS_AND_MASKS,
    INF,
    Numbers,
    alpha_of,
    has_numbers,
    mask_arguments,
    masks,
    random_tensors,
    with_gradients,
)

WITH_A_NUMBER = [pair for pair in ALPHAS_AND_MASKS if isinstance(pair[0], float)]
MASKS_OF_NUMBERS = ("bias", "holes")  # which are added to the scores, and have gradients


@pytest.mark.parametrize(
    ("alpha", "kind"), [pair for pair in WITH_A_NUMBER if pair[1] not in MASKS_OF_NUMBERS]
)
def test_gradients_in_query_key_and_value_are_difference_quotients(alpha: float, kind: str) -> None:
    tensors = with_gradients(random_tensors(3, 2, queries=3, keys=4, dtype=torch.float64))
    mask = masks(3, 4)[kind]

    def attention(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return entmax_attention(query, key, value, alpha=alpha, **mask_arguments(mask))

    assert torch.autograd.gradcheck(attention, tensors)


@pytest.mark.parametrize(
    ("alpha", "kind"), [pair for pair in WITH_A_NUMBER if pair[1] in MASKS_OF_NUMBERS]
)
def test_gradients_in_query_key_value_and_mask_are_difference_quotients(
    alpha: float, kind: str
) -> None:
    mask = masks(3, 4)[kind]
    assert isinstance(mask, Tensor)
    assert has_numbers(mask)
    tensors = with_gradients(
        [*random_tensors(3, 2, queries=3, keys=4, dtype=torch.float64), mask.double()]
    )

    def attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor) -> Tensor:
        return entmax_attention(query, key, value, alpha=alpha, attn_mask=attn_mask)

    assert torch.autograd.gradcheck(attention, tensors)


@pytest.mark.parametrize(
    ("alpha", "kind"), [((1.1, 1.6), "none"), ((1.9, 2.4), "causal"), ((1.001, 3.0), "random")]
)
def test_gradients_in_alpha_are_difference_quotients(alpha: tuple[float, ...], kind: str) -> None:
    alphas = torch.tensor(alpha, dtype=torch.float64)
    tensors = with_gradients(
        [*random_tensors(3, 2, queries=3, keys=4, dtype=torch.float64), alphas]
    )
    mask = masks(3, 4)[kind]

    def attention(query: Tensor, key: Tensor, value: Tensor, alpha: Tensor) -> Tensor:
        return entmax_attention(query, key, value, alpha=alpha, **mask_arguments(mask))

    assert torch.autograd.gradcheck(attention, tensors)


def test_the_gradient_in_alpha_at_softmax_continues_that_above() -> None:
    """At alpha = 1 there is no difference quotient from below."""
    query, key, value = random_tensors(3, 2, dtype=torch.float64)

    def gradient(number: float) -> Tensor:
        alpha = torch.tensor([number, number], dtype=torch.float64, requires_grad=True)
        return torch.autograd.grad(entmax_attention(query, key, value, alpha=alpha).sum(), alpha)[0]

    torch.testing.assert_close(gradient(1.0), gradient(1 + 1e-7), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("alpha", [1.5, 2.0, (1.2, 1.7)])
def test_second_gradients_are_difference_quotients_of_the_first(alpha: Numbers) -> None:
    form = alpha_of(alpha, torch.float64)
    tensors = with_gradients(random_tensors(2, queries=2, keys=3, dtype=torch.float64))
    assert torch.autograd.gradgradcheck(
        lambda *arguments: entmax_attention(*arguments, alpha=form), tensors
    )


@pytest.mark.parametrize("alpha", [1.0, 1.5, 2.5, (1.0, 1.6)])
class TestQueriesWithoutKeys:
    """The mask closes all keys to the last three of five queries."""

    @pytest.fixture
    def arguments(self, alpha: Numbers) -> list[Tensor]:
        """Query, key, value, what the mask adds to, and alpha if it is a tensor."""
        form = alpha_of(alpha)
        alphas = [form] if isinstance(form, Tensor) else []
        return with_gradients([*random_tensors(3, 2), torch.zeros(5, 7), *alphas])

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


@pytest.mark.parametrize(
    "key_of",
    [pytest.param(lambda x: x, id="itself"), pytest.param(lambda x: 2 * x.flip(-1), id="its key")],
)
def test_inputs_of_one_tensor_have_the_gradients_of_separate_ones(
    key_of: Callable[[Tensor], Tensor],
) -> None:
    """The attention is self-attention, and autograd records second derivatives meanwhile."""
    (x, *_) = with_gradients(random_tensors(3, 2, queries=3, keys=3, dtype=torch.float64))
    factors = torch.linspace(-1, 1, x.numel(), dtype=torch.float64).view_as(x)

    def derivatives(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        output = entmax_attention(query, key, value)
        (first,) = torch.autograd.grad((factors * output).sum(), x, create_graph=True)
        (second,) = torch.autograd.grad((factors * first).sum(), x)
        return first.detach(), second

    shared = derivatives(x, key_of(x), x)
    torch.testing.assert_close(shared, derivatives(x.clone(), key_of(x.clone()), x.clone()))
