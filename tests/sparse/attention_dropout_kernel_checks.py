"""The GPU kernels of attention under dropout.

Not collected by itself: test_kernels.py runs it, as kernel_checks.py, in Triton's interpreter or on
a GPU.
"""

from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from onmt_entmax import entmax_attention, entmax_attention_weights
from onmt_entmax.sparse.composed_attention import composed_attention
from onmt_entmax.sparse.inputs import Inputs
from tests.sparse.attention_kernel_setup import SIZE, random_leaves, use_small_blocks
from tests.sparse.implementations import KERNEL_DEVICE as DEVICE

DROPOUT = 0.3  # probability

pytestmark = pytest.mark.usefixtures("kernels_are_there")


class Dropped(NamedTuple):
    """Attention under dropout whose values are the identity: its output is the weights.

    Attributes:
        query: ``(2, 2, queries, SIZE)``.
        key: ``(2, 2, keys, SIZE)``.
        identity: the values, ``(2, 2, keys, keys)``.
        weights: the weights without dropout, ``(2, 2, queries, keys)``.
        output: the weights with dropout, ``(2, 2, queries, keys)``.
    """

    query: Tensor
    key: Tensor
    identity: Tensor
    weights: Tensor
    output: Tensor

    @property
    def kept(self) -> Tensor:
        """Whether dropout kept a weight; false also for weights outside of the support."""
        return self.output != 0


@pytest.fixture(scope="module")
def dropped() -> Dropped:
    query, key, _ = random_leaves(18, 20)
    identity = torch.eye(20, device=DEVICE).expand(2, 2, 20, 20).contiguous().requires_grad_()
    weights = entmax_attention_weights(query, key, alpha=1.5)
    with pytest.MonkeyPatch.context() as patch:
        use_small_blocks(patch)
        output = entmax_attention(query, key, identity, alpha=1.5, dropout_p=DROPOUT)
    return Dropped(query, key, identity, weights, output)


def test_dropout_scales_the_weights_that_it_keeps(dropped: Dropped) -> None:
    expected = dropped.weights / (1 - DROPOUT)
    kept = dropped.kept
    torch.testing.assert_close(dropped.output[kept], expected[kept], rtol=1e-4, atol=1e-5)


def test_dropout_drops_its_share_of_the_weights(dropped: Dropped) -> None:
    """Only weights in the support count: those below 1e-4 may be rounded to 0."""
    in_support = dropped.weights > 1e-4
    share = (in_support & ~dropped.kept).sum() / in_support.sum()
    assert float(share) == pytest.approx(DROPOUT, abs=0.1)  # of several hundred weights


def test_gradients_drop_the_weights_that_the_output_drops(
    monkeypatch: pytest.MonkeyPatch, dropped: Dropped
) -> None:
    use_small_blocks(monkeypatch)
    query, key, identity, _, output = dropped
    upstream = torch.randn_like(output)
    gradients = torch.autograd.grad(output, [query, key, identity], upstream)
    factors = torch.where(dropped.kept, 1 / (1 - DROPOUT), 0.0)
    arguments = Inputs(
        query,
        key,
        identity,
        alpha=1.5,
        mask=None,
        is_causal=False,
        scale=SIZE**-0.5,
        dropout_p=DROPOUT,
    )
    expected = torch.autograd.grad(
        composed_attention(arguments, factors), [query, key, identity], upstream
    )
    for ours, other in zip(gradients, expected, strict=True):
        torch.testing.assert_close(ours, other, rtol=1e-4, atol=1e-4)


def test_second_derivatives_under_dropout_are_refused() -> None:
    query, key, value = random_leaves(3, 4)
    output = entmax_attention(query, key, value, alpha=1.5, dropout_p=0.5)
    with pytest.raises(RuntimeError, match="no second derivatives on a GPU"):
        torch.autograd.grad(output.square().sum(), query, create_graph=True)
