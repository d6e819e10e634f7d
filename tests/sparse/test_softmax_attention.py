"""Attention with alpha 1 is PyTorch's own attention with softmax."""

from typing import NamedTuple

import pytest
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from onmt_entmax import entmax_attention
from tests.sparse.attention_inputs import as_leaves, mask_arguments, masks, random_tensors


class BesideTorch(NamedTuple):
    """Softmax attention of the same tensors: ours and PyTorch's."""

    tensors: list[Tensor]
    ours: Tensor
    theirs: Tensor


@pytest.fixture(params=["none", "causal", "padding", "bias"])
def softmax(request: pytest.FixtureRequest) -> BesideTorch:
    mask = masks(5, 7)[request.param]
    tensors = as_leaves(random_tensors(3, 2))
    ours = entmax_attention(*tensors, alpha=1.0, **mask_arguments(mask), scale=0.7)
    theirs = scaled_dot_product_attention(*tensors, **mask_arguments(mask), scale=0.7)
    return BesideTorch(tensors, ours, theirs)


def test_softmax_is_that_of_torch(softmax: BesideTorch) -> None:
    torch.testing.assert_close(softmax.ours, softmax.theirs)


def test_gradients_of_softmax_are_those_of_torch(softmax: BesideTorch) -> None:
    upstream = torch.randn_like(softmax.ours)
    gradients = [
        torch.autograd.grad(output, softmax.tensors, upstream)
        for output in (softmax.ours, softmax.theirs)
    ]
    torch.testing.assert_close(*gradients)
