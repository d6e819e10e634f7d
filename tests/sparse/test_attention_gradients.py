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
    as_leaves,
    has_numbers,
    mask_arguments,
    masks,
    random_tensors,
)

MASKS_OF_NUMBERS = ("bias", "holes")  # which are added to the scores, and have gradients
ONE_ALPHA = [(alpha, kind) for alpha, kind in ALPHAS_AND_MASKS if isinstance(alpha, float)]
WITH_BOOLEANS = [(alpha, kind) for alpha, kind in ONE_ALPHA if kind not in MASKS_OF_NUMBERS]
WITH_NUMBERS = [(alpha, kind) for alpha, kind in ONE_ALPHA if kind in MASKS_OF_NUMBERS]


@pytest.mark.parametrize(("alpha", "kind"), WITH_BOOLEANS)
def test_gradients_with_respect_to_query_key_and_value_equal_finite_differences(
    alpha: float, kind: str
) -> None:
    tensors = as_leaves(random_tensors(3, 2, queries=3, keys=4, dtype=torch.float64))
    mask = masks(3, 4)[kind]

    def attention(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return entmax_attention(query, key, value, alpha=alpha, **mask_arguments(mask))

    assert torch.autograd.gradcheck(attention, tensors)


@pytest.mark.parametrize(("alpha", "kind"), WITH_NUMBERS)
def test_gradients_with_respect_to_query_key_value_and_mask_equal_finite_differences(
    alpha: float, kind: str
) -> None:
    mask = masks(3, 4)[kind]
    assert isinstance(mask, Tensor)
    assert has_numbers(mask)
    tensors = as_leaves(
        [*random_tensors(3, 2, queries=3, keys=4, dtype=torch.float64), mask.double()]
    )

    def attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor) -> Tensor:
        return entmax_attention(query, key, value, alpha=alpha, attn_mask=attn_mask)

    assert torch.autograd.gradcheck(attention, tensors)


@pytest.mark.parametrize(
    ("alpha", "kind"), [((1.1, 1.6), "none"), ((1.9, 2.4), "causal"), ((1.001, 3.0), "random")]
)
def test_gradients_with_respect_to_alpha_equal_finite_differences(
    alpha: tuple[float, ...], kind: str
) -> None:
    alphas = torch.tensor(alpha, dtype=torch.float64)
    tensors = as_leaves([*random_tensors(3, 2, queries=3, keys=4, dtype=torch.float64), alphas])
    mask = masks(3, 4)[kind]

    def attention(query: Tensor, key: Tensor, value: Tensor, alpha: Tensor) -> Tensor:
        return entmax_attention(query, key, value, alpha=alpha, **mask_arguments(mask))

    assert torch.autograd.gradcheck(attention, tensors)


def test_the_gradient_with_respect_to_alpha_is_continuous_at_softmax() -> None:
    """At alpha = 1 there is no finite difference from below, so an alpha just above is compared."""
    query, key, value = random_tensors(3, 2, dtype=torch.float64)

    def gradient(number: float) -> Tensor:
        alpha = torch.tensor([number, number], dtype=torch.float64, requires_grad=True)
        return torch.autograd.grad(entmax_attention(query, key, value, alpha=alpha).sum(), alpha)[0]

    torch.testing.assert_close(gradient(1.0), gradient(1 + 1e-7), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("alpha", [1.5, 2.0, (1.2, 1.7)])
def test_second_derivatives_equal_finite_differences(alpha: Numbers) -> None:
    alpha_argument = alpha_of(alpha, torch.float64)
    tensors = as_leaves(random_tensors(2, queries=2, keys=3, dtype=torch.float64))
    assert torch.autograd.gradgradcheck(
        lambda *arguments: entmax_attention(*arguments, alpha=alpha_argument), tensors
    )


# --- queries without keys --------------------------------------------------------------------

# The first two of five queries attend to all keys; the mask closes all keys to the other three.
OPEN = 2
some_alphas = pytest.mark.parametrize("alpha", [1.0, 1.5, 2.5, (1.0, 1.6)])


def attention_with_closed_queries(arguments: list[Tensor], alpha: Numbers) -> Tensor:
    """Return the attention of five queries, three of which have no keys.

    Args:
        arguments: query, key, value, and numbers ``(5, 7)`` that the mask adds to the scores.
        alpha: a number, or one for each head.
    """
    query, key, value, added = arguments
    closed = torch.where(torch.arange(5) < OPEN, 0.0, -INF).unsqueeze(1)
    return entmax_attention(query, key, value, alpha=alpha_of(alpha), attn_mask=added + closed)


@pytest.fixture
def arguments() -> list[Tensor]:
    """Arguments of `attention_with_closed_queries`, in leaves."""
    return as_leaves([*random_tensors(3, 2), torch.randn(5, 7)])


@some_alphas
def test_queries_without_keys_give_zeros(arguments: list[Tensor], alpha: Numbers) -> None:
    assert not attention_with_closed_queries(arguments, alpha)[..., OPEN:, :].any()


@some_alphas
def test_queries_without_keys_pass_no_gradient_on(arguments: list[Tensor], alpha: Numbers) -> None:
    output = attention_with_closed_queries(arguments, alpha)
    gradients = torch.autograd.grad(output[..., OPEN:, :].sum(), arguments)
    assert [bool(gradient.any()) for gradient in gradients] == [False] * 4


def attention_of_open_queries(arguments: list[Tensor], alpha: Numbers) -> Tensor:
    """Return the attention of the open queries alone."""
    query, key, value, added = arguments
    return entmax_attention(
        query[..., :OPEN, :], key, value, alpha=alpha_of(alpha), attn_mask=added[:OPEN]
    )


@some_alphas
def test_queries_without_keys_do_not_change_the_output_of_others(
    arguments: list[Tensor], alpha: Numbers
) -> None:
    output = attention_with_closed_queries(arguments, alpha)[..., :OPEN, :]
    torch.testing.assert_close(output, attention_of_open_queries(arguments, alpha))


@some_alphas
def test_queries_without_keys_do_not_change_the_gradients_of_others(
    arguments: list[Tensor], alpha: Numbers
) -> None:
    output = attention_with_closed_queries(arguments, alpha)
    alone = attention_of_open_queries(arguments, alpha)
    factors = torch.randn_like(output)
    gradients = torch.autograd.grad(output, arguments, factors)
    expected = torch.autograd.grad(alone, arguments, factors[..., :OPEN, :])
    torch.testing.assert_close(gradients, expected)


@pytest.mark.parametrize("alphas", [(1.0, 1.6), (1.5, 2.5)])
def test_queries_without_keys_do_not_change_the_gradient_with_respect_to_alpha(
    arguments: list[Tensor], alphas: tuple[float, float]
) -> None:
    """The upstream gradient is not 0 for queries without keys."""
    query, key, value, added = (argument.detach() for argument in arguments)
    closed = torch.where(torch.arange(5) < OPEN, 0.0, -INF).unsqueeze(1)
    factors = torch.randn(query.shape[:-1] + value.shape[-1:])

    def gradient(query: Tensor, mask: Tensor, factors: Tensor) -> Tensor:
        alpha = torch.tensor(alphas, requires_grad=True)
        output = entmax_attention(query, key, value, alpha=alpha, attn_mask=mask)
        return torch.autograd.grad(output, alpha, factors)[0]

    expected = gradient(query[..., :OPEN, :], added[:OPEN], factors[..., :OPEN, :])
    torch.testing.assert_close(gradient(query, added + closed, factors), expected)


# --- one tensor as several inputs ------------------------------------------------------------


@pytest.mark.parametrize(
    "key_of",
    [pytest.param(lambda x: x, id="itself"), pytest.param(lambda x: 2 * x.flip(-1), id="its key")],
)
def test_inputs_of_one_tensor_have_the_gradients_of_separate_ones(
    key_of: Callable[[Tensor], Tensor],
) -> None:
    """This is self-attention. Both the first and the second derivatives are compared."""
    (x, *_) = as_leaves(random_tensors(3, 2, queries=3, keys=3, dtype=torch.float64))
    factors = torch.linspace(-1, 1, x.numel(), dtype=torch.float64).view_as(x)

    def derivatives(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        output = entmax_attention(query, key, value)
        (first,) = torch.autograd.grad((factors * output).sum(), x, create_graph=True)
        (second,) = torch.autograd.grad((factors * first).sum(), x)
        return first.detach(), second

    shared = derivatives(x, key_of(x), x)
    torch.testing.assert_close(shared, derivatives(x.clone(), key_of(x.clone()), x.clone()))
