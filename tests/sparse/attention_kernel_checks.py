"""The GPU kernels of attention, beside PyTorch's operations in float64.

Not collected by itself: test_kernels.py runs it, as kernel_checks.py, in Triton's interpreter or on
a GPU. Attention has two sentences and two heads; keys and queries have SIZE numbers, values
VALUE_SIZE, which are unlike so that they cannot be confused.
"""

from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor

from onmt_entmax import entmax_attention, entmax_attention_weights
from onmt_entmax.sparse.backends import (
    triton_attention,
    triton_attention_forward,
    triton_attention_gradients,
)
from onmt_entmax.sparse.composed_attention import composed
from onmt_entmax.sparse.inputs import Inputs
from tests.sparse.kernel_checks import DEVICE, kernels_are_there  # noqa: F401

INF = float("inf")
SIZE, VALUE_SIZE = 8, 5
slow = pytest.mark.slow


def use_small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take blocks of 16 queries and keys, and never one for all keys."""
    monkeypatch.setattr(triton_attention, "block_side", lambda *_: 16)
    monkeypatch.setattr(triton_attention, "fits_one_block", lambda *_: False)


@pytest.fixture
def blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    use_small_blocks(monkeypatch)


def inputs(queries: int, keys: int, dtype: torch.dtype = torch.float32) -> list[Tensor]:
    """Return a query, key and value ``(2, 2, number, size)``, as leaves."""
    shapes = ((queries, SIZE), (keys, SIZE), (keys, VALUE_SIZE))
    return [torch.randn(2, 2, *shape).to(DEVICE, dtype).requires_grad_() for shape in shapes]


def mask_of(kind: str, queries: int, keys: int) -> dict[str, Any]:
    """Return the arguments for a kind of mask: none, causal, random, numbers or padding."""
    if kind == "none":
        return {}
    if kind == "causal":
        return {"is_causal": True}
    if kind == "random":
        mask = torch.rand(2, 1, queries, keys) < 0.6
        mask[1, 0, 2] = False  # a query without a key
    elif kind == "numbers":
        mask = torch.randn(2, queries, keys).masked_fill(torch.rand(queries, keys) < 0.3, -INF)
    elif kind == "padding":
        lengths = torch.tensor([keys, 3])  # of the two sentences
        mask = torch.arange(keys) < lengths.view(2, 1, 1, 1)
    else:
        raise ValueError(kind)
    return {"attn_mask": mask.to(DEVICE)}


Alpha = float | Tensor


def is_of_the_kernels(output: Tensor) -> bool:
    """Return whether the kernels computed an output that has a gradient."""
    return "Fused" in str(output.grad_fn)


def kernels_output(tensors: list[Tensor], alpha: Alpha, options: dict[str, Any]) -> Tensor:
    """Return the output of the kernels; fail if PyTorch computed it."""
    output = entmax_attention(*tensors, alpha=alpha, **options)
    assert is_of_the_kernels(output)
    return output


def exact_output(tensors: list[Tensor], alpha: Alpha, options: dict[str, Any]) -> Tensor:
    """Return the output of PyTorch operations in float64."""
    query, key, value = (tensor.double() for tensor in tensors)
    mask = options.get("attn_mask")
    if mask is not None and mask.is_floating_point():
        mask = mask.double()
    if isinstance(alpha, Tensor):
        alpha = alpha.double().view(-1, 1, 1)
    return composed(
        Inputs(
            query,
            key,
            value,
            alpha,
            mask,
            is_causal=options.get("is_causal", False),
            scale=options["scale"],
            dropout_p=0.0,
        )
    )


def compare(
    tensors: list[Tensor],
    alpha: Alpha,
    mask: dict[str, Any],
    *,
    tolerance: float = 1e-4,
    scale: float = 0.4,
) -> None:
    """Compare the kernels' output and gradients with those of float64.

    Args:
        tensors: query, key and value.
        alpha: a number, or one for each head.
        mask: arguments for a mask.
        tolerance: relative to the largest number of a tensor; by default hundreds of roundings of
            float32.
        scale: of the scores.
    """
    query, *_ = tensors
    # A factor for each query and one for each number: gradients of all numbers differ.
    of_queries = torch.randn_like(query[..., :1])
    upstream = of_queries * torch.arange(1, VALUE_SIZE + 1, device=DEVICE)
    leaves = [*tensors, alpha] if isinstance(alpha, Tensor) else tensors
    options = {**mask, "scale": scale}
    results = []
    for output_of in (kernels_output, exact_output):
        output = output_of(tensors, alpha, options)
        gradients = torch.autograd.grad(output, leaves, upstream.to(output.dtype))
        results.append([output, *gradients])
    for ours, expected in zip(*results, strict=True):
        bound = tolerance * max(float(expected.detach().abs().max()), 1.0)
        torch.testing.assert_close(ours.double(), expected.double(), rtol=0, atol=bound)


def as_alpha(numbers: float | tuple[float, ...]) -> Alpha:
    """Return a number, or a tensor with a gradient."""
    if isinstance(numbers, tuple):
        return torch.tensor(numbers, device=DEVICE).requires_grad_()
    return numbers


@pytest.mark.parametrize("alpha", [1.0, 1.37, 1.5, 2.0, (1.0, 1.6)])
def test_values_and_gradients_equal_float64(alpha: float | tuple[float, ...]) -> None:
    """All keys in one block."""
    compare(inputs(10, 12), as_alpha(alpha), mask={})


LEARNED = (1.2, 1.8)
# The interpreter takes seconds for each.
IN_BLOCKS = [
    (1.5, "causal"),
    (1.5, "numbers"),
    (LEARNED, "random"),
    *(pytest.param(1.5, kind, marks=slow) for kind in ("none", "random", "padding")),
    *(pytest.param(LEARNED, kind, marks=slow) for kind in ("none", "causal", "numbers")),
]


@pytest.mark.parametrize(("alpha", "kind"), IN_BLOCKS)
def test_values_and_gradients_in_blocks_equal_float64(
    blocks: None, alpha: float | tuple[float, ...], kind: str
) -> None:
    """With queries and keys that fill no whole block."""
    queries, keys = (20, 18) if kind == "causal" else (18, 20)
    compare(inputs(queries, keys), as_alpha(alpha), mask_of(kind, queries, keys))


def test_values_and_gradients_of_large_scores_equal_float64(blocks: None) -> None:
    compare(inputs(17, 19), 1.5, mask={}, tolerance=2e-4, scale=20.0)


BFLOAT16_ON_A_GPU = pytest.mark.skipif(
    DEVICE == "cpu", reason="the interpreter multiplies bfloat16 as whole numbers"
)


@pytest.mark.parametrize(
    ("dtype", "tolerance"),
    [(torch.float16, 5e-3), pytest.param(torch.bfloat16, 4e-2, marks=BFLOAT16_ON_A_GPU)],
)
def test_values_and_gradients_of_half_types_equal_float64(
    blocks: None, dtype: torch.dtype, tolerance: float
) -> None:
    mask = mask_of("random", 18, 20)
    compare(inputs(18, 20, dtype=dtype), 1.5, mask, tolerance=tolerance)


@pytest.mark.parametrize(
    "dtype", [torch.float16, pytest.param(torch.bfloat16, marks=BFLOAT16_ON_A_GPU)]
)
def test_half_types_are_returned(blocks: None, dtype: torch.dtype) -> None:
    assert entmax_attention(*inputs(18, 20, dtype=dtype)).dtype == dtype


def split_heads() -> tuple[Tensor, Tensor, Tensor]:
    """Return a query, key and value ``(2, 2, 9, SIZE)`` that are views of one projection."""
    joint = torch.randn(2, 9, 3, 2, SIZE, device=DEVICE)
    query, key, value = (part.transpose(1, 2) for part in joint.unbind(2))
    return query, key, value


def test_strides_change_nothing() -> None:
    tensors = split_heads()
    expected = entmax_attention(*(tensor.contiguous() for tensor in tensors))
    assert torch.equal(entmax_attention(*tensors), expected)


def test_keys_of_all_sentences_are_broadcast() -> None:
    query, key, value = split_heads()
    shared = key[:1].detach().requires_grad_()  # (1, 2, 9, SIZE)
    output = entmax_attention(query, shared, value)
    assert torch.equal(output, entmax_attention(query, key[:1].expand_as(key), value))


def test_the_gradient_of_keys_of_all_sentences_has_their_shape() -> None:
    query, key, value = split_heads()
    shared = key[:1].detach().requires_grad_()  # (1, 2, 9, SIZE)
    output = entmax_attention(query, shared, value)
    (gradient,) = torch.autograd.grad(output.sum(), shared)
    assert gradient.shape == shared.shape


class Dropped(NamedTuple):
    """Attention under dropout whose values are the identity: its output is the weights."""

    query: Tensor
    key: Tensor
    identity: Tensor
    """``(2, 2, keys, keys)``."""
    weights: Tensor
    """Without dropout, ``(2, 2, queries, keys)``."""
    output: Tensor

    @property
    def kept(self) -> Tensor:
        """Which weights dropout kept, as far as they are in the support."""
        return self.output != 0


DROPOUT = 0.3


@pytest.fixture(scope="module")
def dropped() -> Dropped:
    query, key, _ = inputs(18, 20)
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
    """Of those in the support; smaller weights than 1e-4 may be rounded to 0."""
    in_support = dropped.weights > 1e-4
    share = (in_support & ~dropped.kept).sum() / in_support.sum()
    assert float(share) == pytest.approx(DROPOUT, abs=0.1)  # of several hundred weights


def test_gradients_drop_the_weights_that_the_output_drops(blocks: None, dropped: Dropped) -> None:
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
    expected = torch.autograd.grad(composed(arguments, factors), [query, key, identity], upstream)
    for ours, other in zip(gradients, expected, strict=True):
        torch.testing.assert_close(ours, other, rtol=1e-4, atol=1e-4)


def test_a_mask_with_a_gradient_is_left_to_pytorch() -> None:
    mask = torch.randn(5, 6, device=DEVICE, requires_grad=True)
    output = entmax_attention(*inputs(5, 6), alpha=1.5, attn_mask=mask)
    assert not is_of_the_kernels(output)


def test_float64_is_left_to_pytorch() -> None:
    output = entmax_attention(*inputs(5, 6, dtype=torch.float64))
    assert not is_of_the_kernels(output)


def test_weights_are_left_to_pytorch() -> None:
    query, key, _ = inputs(5, 6)
    assert not is_of_the_kernels(entmax_attention_weights(query, key))


def test_second_derivatives_are_finite() -> None:
    query, key, value = inputs(3, 4)
    output = entmax_attention(query, key, value, alpha=1.5)
    (first,) = torch.autograd.grad(output.square().sum(), query, create_graph=True)
    assert torch.autograd.grad(first.sum(), key)[0].isfinite().all()


def test_second_derivatives_under_dropout_are_refused() -> None:
    query, key, value = inputs(3, 4)
    output = entmax_attention(query, key, value, alpha=1.5, dropout_p=0.5)
    with pytest.raises(RuntimeError, match="no second derivatives on a GPU"):
        torch.autograd.grad(output.square().sum(), query, create_graph=True)


def test_only_the_first_axis_of_a_grid_counts_heads(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others end at 65,535, and a large batch has more heads."""
    grids = []

    class Recorder:
        def __getitem__(self, grid: tuple[int, ...]) -> Any:
            grids.append(grid)
            return lambda *arguments, **constants: None

    monkeypatch.setattr(triton_attention_forward, "attend", Recorder())
    for name in ("gradient_of_queries", "gradient_of_keys"):
        monkeypatch.setattr(triton_attention_gradients, name, Recorder())
    tensors = [torch.zeros(9000, 8, 1, 4, device=DEVICE, requires_grad=True) for _ in range(3)]
    torch.autograd.grad(entmax_attention(*tensors).sum(), tensors)
    assert grids == [(9000 * 8,)] * 3  # one block of one query, or key, for each head
