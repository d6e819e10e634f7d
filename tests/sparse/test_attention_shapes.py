"""Shapes and strides of attention with entmax: what broadcasts, and views of other tensors."""

import pytest
import torch
from torch import Tensor

from onmt_entmax import entmax_attention
from tests.sparse.attention_inputs import as_leaves, random_tensors


class TestLeadingDimensionsThatBroadcast:
    """Of three sentences and two heads, sentences share queries and values, heads share keys."""

    @pytest.fixture
    def alpha(self) -> Tensor:
        return torch.tensor([1.2, 1.8], requires_grad=True)

    @pytest.fixture
    def tensors(self) -> list[Tensor]:
        return as_leaves([torch.randn(1, 2, 5, 4), torch.randn(3, 1, 7, 4), torch.randn(2, 7, 3)])

    @pytest.fixture
    def expanded(self, tensors: list[Tensor]) -> list[Tensor]:
        return [tensor.expand(3, 2, -1, -1).contiguous() for tensor in tensors]

    def test_give_what_expanded_tensors_give(
        self, tensors: list[Tensor], expanded: list[Tensor], alpha: Tensor
    ) -> None:
        expected = entmax_attention(*expanded, alpha=alpha)
        torch.testing.assert_close(entmax_attention(*tensors, alpha=alpha), expected)

    def test_have_gradients_of_their_shapes(self, tensors: list[Tensor], alpha: Tensor) -> None:
        output = entmax_attention(*tensors, alpha=alpha)
        gradients = torch.autograd.grad(output.sum(), [*tensors, alpha])
        shapes = [tensor.shape for tensor in (*tensors, alpha)]
        assert [gradient.shape for gradient in gradients] == shapes

    def test_may_be_missing(self, expanded: list[Tensor], alpha: Tensor) -> None:
        output = entmax_attention(*expanded, alpha=alpha)
        first = [tensor[0, 0] for tensor in expanded]  # of the first sentence, the first head
        torch.testing.assert_close(entmax_attention(*first, alpha=1.2), output[0, 0])


class TestStrides:
    """Strides as models have them: heads are split from one projection."""

    @pytest.fixture
    def tensors(self) -> list[Tensor]:
        joint = torch.randn(3, 6, 3, 2, 8)
        return [part.transpose(1, 2) for part in joint.unbind(2)]

    @pytest.fixture
    def expected(self, tensors: list[Tensor]) -> Tensor:
        return entmax_attention(*(tensor.contiguous() for tensor in tensors), alpha=1.5)

    def test_of_split_heads_change_nothing(self, tensors: list[Tensor], expected: Tensor) -> None:
        assert torch.equal(entmax_attention(*tensors, alpha=1.5), expected)

    def test_of_transposed_vectors_change_nothing(
        self, tensors: list[Tensor], expected: Tensor
    ) -> None:
        transposed = [tensor.mT.contiguous().mT for tensor in tensors]
        torch.testing.assert_close(entmax_attention(*transposed, alpha=1.5), expected)

    def test_of_masks_change_nothing(self, tensors: list[Tensor]) -> None:
        mask = torch.randn(6, 6).t()
        torch.testing.assert_close(
            entmax_attention(*tensors, alpha=1.5, attn_mask=mask),
            entmax_attention(*tensors, alpha=1.5, attn_mask=mask.contiguous()),
        )


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
    mask = torch.randn(shape, requires_grad=True)
    output = entmax_attention(*random_tensors(3, 2), alpha=1.5, attn_mask=mask)
    (gradient,) = torch.autograd.grad(output.sum(), mask)
    assert gradient.shape == shape
