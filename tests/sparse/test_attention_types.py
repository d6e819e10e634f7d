"""Types of attention with entmax: it computes 16 bits in float32, and obeys autocast."""

import pytest
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from onmt_entmax import entmax_attention, entmax_attention_weights
from tests.sparse.attention_inputs import Numbers, alpha_of, as_leaves, random_tensors

half_types = pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
some_alphas = pytest.mark.parametrize(
    "alpha",
    [1.0, 1.5, pytest.param((1.5, 2.2), id="1.5 and 2.2")],  # two: one for each head
)


@half_types
@some_alphas
def test_half_types_are_rounded_only_at_the_end(dtype: torch.dtype, alpha: Numbers) -> None:
    tensors = [tensor.to(dtype) for tensor in random_tensors(3, 2)]
    output = entmax_attention(*tensors, alpha=alpha_of(alpha))
    in_float32 = entmax_attention(*(tensor.float() for tensor in tensors), alpha=alpha_of(alpha))
    torch.testing.assert_close(output, in_float32.to(dtype), rtol=0, atol=0)


@half_types
@some_alphas
def test_half_types_are_returned(dtype: torch.dtype, alpha: Numbers) -> None:
    tensors = [tensor.to(dtype) for tensor in random_tensors(3, 2)]
    assert entmax_attention(*tensors, alpha=alpha_of(alpha)).dtype == dtype


@half_types
@some_alphas
def test_weights_of_half_types_are_float32(dtype: torch.dtype, alpha: Numbers) -> None:
    query, key, _ = (tensor.to(dtype) for tensor in random_tensors(3, 2))
    assert entmax_attention_weights(query, key, alpha=alpha_of(alpha)).dtype == torch.float32


# --- autocast --------------------------------------------------------------------------------


@pytest.fixture
def tensors() -> list[Tensor]:
    """A query, a key and a value of three sentences and two heads, in float32."""
    return as_leaves(random_tensors(3, 2))


def test_autocast_gives_what_pytorchs_attention_gives(tensors: list[Tensor]) -> None:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        ours = entmax_attention(*tensors, alpha=1.0)
        theirs = scaled_dot_product_attention(*tensors)
    assert theirs.dtype == torch.bfloat16
    # PyTorch rounds its weights to bfloat16, too: a relative error of 2 ** -9 each.
    torch.testing.assert_close(ours, theirs, rtol=0.02, atol=0.02)


def test_autocast_leaves_gradients_in_float32(tensors: list[Tensor]) -> None:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output = entmax_attention(*tensors, alpha=1.0)
    gradients = torch.autograd.grad(output.sum(), tensors)
    assert [gradient.dtype for gradient in gradients] == [torch.float32] * 3


def test_autocast_leaves_float64_alone(tensors: list[Tensor]) -> None:
    double = [tensor.double() for tensor in tensors]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert entmax_attention(*double, alpha=1.5).dtype == torch.float64
