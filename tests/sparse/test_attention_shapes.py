"""Shapes and strides of attention with entmax: what broadcasts, and views of other tensors."""

import pytest
import torch
from torch import Tensor

from onmt_entmax import entmax_attention
from tests.sparse.attention_inputs import as_leaves, random_tensors

# --- leading dimensions ----------------------------------------------------------------------


@pytest.fixture
def alpha() -> Tensor:
    """An alpha for each of two heads."""
    return torch.tensor([1.2, 1.8], requires_grad=True)


@pytest.fixture
def broadcast() -> list[Tensor]:
    """A query, a key and a value of three sentences and two heads.

    The sentences share a query and a value, the heads share a key.
    """
    return as_leaves([torch.randn(1, 2, 5, 4), torch.randn(3, 1, 7, 4), torch.randn(2, 7, 3)])


@pytest.fixture
def expanded(broadcast: list[Tensor]) -> list[Tensor]:
    """The same with copies for every sentence and head."""
    return [tensor.expand(3, 2, -1, -1).contiguous() for tensor in broadcast]


def test_leading_dimensions_broadcast(
    broadcast: list[Tensor], expanded: list[Tensor], alpha: Tensor
) -> None:
    expected = entmax_attention(*expanded, alpha=alpha)
    torch.testing.assert_close(entmax_attention(*broadcast, alpha=alpha), expected)


def test_inputs_that_broadcast_have_gradients_of_their_shapes(
    broadcast: list[Tensor], expanded: list[Tensor], alpha: Tensor
) -> None:
    """An input gets the sum of the gradients of its copies."""
    leaves = [*broadcast, alpha]
    gradients = torch.autograd.grad(entmax_attention(*broadcast, alpha=alpha).sum(), leaves)
    expected = torch.autograd.grad(entmax_attention(*expanded, alpha=alpha).sum(), leaves)
    torch.testing.assert_close(gradients, expected)


def test_leading_dimensions_may_be_missing(expanded: list[Tensor], alpha: Tensor) -> None:
    output = entmax_attention(*expanded, alpha=alpha)
    first = [tensor[0, 0] for tensor in expanded]  # of the first sentence, the first head
    torch.testing.assert_close(entmax_attention(*first, alpha=1.2), output[0, 0])


# --- strides ---------------------------------------------------------------------------------


@pytest.fixture
def split_heads() -> list[Tensor]:
    """A query, a key and a value ``(3, 2, 6, 8)``, split from one projection as in a model."""
    joint = torch.randn(3, 6, 3, 2, 8)
    return [part.transpose(1, 2) for part in joint.unbind(2)]


@pytest.fixture
def expected(split_heads: list[Tensor]) -> Tensor:
    """The attention of the same numbers in contiguous tensors."""
    return entmax_attention(*(tensor.contiguous() for tensor in split_heads), alpha=1.5)


def test_strides_of_split_heads_change_nothing(split_heads: list[Tensor], expected: Tensor) -> None:
    assert torch.equal(entmax_attention(*split_heads, alpha=1.5), expected)


def test_strides_of_transposed_vectors_change_nothing(
    split_heads: list[Tensor], expected: Tensor
) -> None:
    transposed = [tensor.mT.contiguous().mT for tensor in split_heads]
    torch.testing.assert_close(entmax_attention(*transposed, alpha=1.5), expected)


def test_strides_of_a_mask_change_nothing(split_heads: list[Tensor]) -> None:
    mask = torch.randn(6, 6).t()
    torch.testing.assert_close(
        entmax_attention(*split_heads, alpha=1.5, attn_mask=mask),
        entmax_attention(*split_heads, alpha=1.5, attn_mask=mask.contiguous()),
    )


# --- masks -----------------------------------------------------------------------------------

mask_shapes = pytest.mark.parametrize("shape", [(3, 1, 5, 1), (5, 1), (7,), (2, 1, 1), ()])


@mask_shapes
@pytest.mark.parametrize("is_boolean", [False, True], ids=["numbers", "booleans"])
def test_masks_broadcast(shape: tuple[int, ...], is_boolean: bool) -> None:
    tensors, numbers = random_tensors(3, 2), torch.randn(shape)
    mask = numbers > 0.2 if is_boolean else numbers
    expanded = mask.expand(3, 2, 5, 7).contiguous()
    expected = entmax_attention(*tensors, alpha=1.5, attn_mask=expanded)
    output = entmax_attention(*tensors, alpha=1.5, attn_mask=mask)
    torch.testing.assert_close(output, expected)


@mask_shapes
def test_masks_that_broadcast_have_gradients_of_their_shape(shape: tuple[int, ...]) -> None:
    """An input gets the sum of the gradients of its copies."""
    tensors, mask = random_tensors(3, 2), torch.randn(shape, requires_grad=True)
    expanded = mask.expand(3, 2, 5, 7).contiguous()
    factors = torch.randn(3, 2, 5, 3)  # the gradient of a plain sum would be 0

    def gradient(attn_mask: Tensor) -> Tensor:
        output = entmax_attention(*tensors, alpha=1.5, attn_mask=attn_mask)
        return torch.autograd.grad(output, mask, factors)[0]

    torch.testing.assert_close(gradient(mask), gradient(expanded), rtol=1e-5, atol=1e-5)
