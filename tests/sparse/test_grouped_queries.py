"""Grouped query attention: several heads of queries share a head of keys and values."""

import pytest
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from onmt_entmax import entmax_attention, entmax_attention_weights
from tests.sparse.attention_inputs import Numbers, alpha_of, as_leaves

QUERY_HEADS, KEY_HEADS = 6, 2


@pytest.fixture
def tensors() -> list[Tensor]:
    """A query, a key and a value in float64."""
    query = torch.randn(3, QUERY_HEADS, 5, 4)
    key, value = torch.randn(3, KEY_HEADS, 7, 4), torch.randn(3, KEY_HEADS, 7, 3)
    return [tensor.double() for tensor in (query, key, value)]


def repeated(tensor: Tensor) -> Tensor:
    """Return a key or value with a head for each head of the query."""
    return tensor.repeat_interleave(QUERY_HEADS // KEY_HEADS, 1)


def test_softmax_is_that_of_torch(tensors: list[Tensor]) -> None:
    expected = scaled_dot_product_attention(*tensors, enable_gqa=True)
    ours = entmax_attention(*tensors, alpha=1.0, enable_gqa=True)
    torch.testing.assert_close(ours, expected)


some_alphas = pytest.mark.parametrize("alpha", [1.5, 3.0, (1.2, 1.4, 1.6, 1.8, 2.0, 2.4)])


@some_alphas
def test_attention_equals_that_of_repeated_keys(tensors: list[Tensor], alpha: Numbers) -> None:
    (query, key, value), alpha_argument = tensors, alpha_of(alpha, torch.float64)
    output = entmax_attention(query, key, value, alpha=alpha_argument, enable_gqa=True)
    expected = entmax_attention(query, repeated(key), repeated(value), alpha=alpha_argument)
    torch.testing.assert_close(output, expected)


@some_alphas
def test_weights_give_the_attention(tensors: list[Tensor], alpha: Numbers) -> None:
    (query, key, value), alpha_argument = tensors, alpha_of(alpha, torch.float64)
    output = entmax_attention(query, key, value, alpha=alpha_argument, enable_gqa=True)
    weights = entmax_attention_weights(query, key, alpha=alpha_argument, enable_gqa=True)
    torch.testing.assert_close(weights @ repeated(value), output)


def test_gradients_are_finite_differences(tensors: list[Tensor]) -> None:
    few = as_leaves([tensor[:1, :, :3] for tensor in tensors])
    assert torch.autograd.gradcheck(
        lambda *arguments: entmax_attention(*arguments, enable_gqa=True), few
    )
