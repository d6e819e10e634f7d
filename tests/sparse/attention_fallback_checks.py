"""What the GPU kernels of attention leave to PyTorch, and second derivatives, which it computes.

Not collected by itself: test_kernels.py runs it, as kernel_checks.py, in Triton's interpreter or on
a GPU.
"""

import pytest
import torch

from onmt_entmax import entmax_attention, entmax_attention_weights
from tests.sparse.attention_kernel_setup import is_of_the_kernels, random_leaves
from tests.sparse.implementations import KERNEL_DEVICE as DEVICE

pytestmark = pytest.mark.usefixtures("kernels_are_there")


def test_a_mask_with_a_gradient_is_left_to_pytorch() -> None:
    mask = torch.randn(5, 6, device=DEVICE, requires_grad=True)
    output = entmax_attention(*random_leaves(5, 6), alpha=1.5, attn_mask=mask)
    assert not is_of_the_kernels(output)


def test_float64_is_left_to_pytorch() -> None:
    output = entmax_attention(*random_leaves(5, 6, dtype=torch.float64))
    assert not is_of_the_kernels(output)


def test_weights_are_left_to_pytorch() -> None:
    query, key, _ = random_leaves(5, 6)
    assert not is_of_the_kernels(entmax_attention_weights(query, key))


def test_second_derivatives_are_finite() -> None:
    query, key, value = random_leaves(3, 4)
    output = entmax_attention(query, key, value, alpha=1.5)
    (first,) = torch.autograd.grad(output.square().sum(), query, create_graph=True)
    assert torch.autograd.grad(first.sum(), key)[0].isfinite().all()
