"""The GPU kernels of attention: outputs and gradients equal PyTorch's operations in float64.

Not collected by itself: test_kernels.py runs it, as kernel_checks.py, in Triton's interpreter or on
a GPU.
"""

from typing import Any

import pytest
import torch
from torch import Tensor

from onmt_entmax import entmax_attention
from onmt_entmax.sparse.backends import triton_attention_forward, triton_attention_gradients
from onmt_entmax.sparse.composed_attention import composed_attention
from onmt_entmax.sparse.inputs import Inputs
from tests.sparse.attention_kernel_setup import (
    SIZE,
    VALUE_SIZE,
    is_of_the_kernels,
    random_leaves,
    use_small_blocks,
)
from tests.sparse.implementations import KERNEL_DEVICE as DEVICE

INF = float("inf")
LEARNED = (1.2, 1.8)  # alphas of two heads

Alpha = float | Tensor

pytestmark = pytest.mark.usefixtures("kernels_are_there")
slow = pytest.mark.slow
bfloat16_on_a_gpu = pytest.mark.skipif(
    DEVICE == "cpu", reason="the interpreter multiplies bfloat16 as whole numbers"
)

# Alphas and kinds of masks. The interpreter takes seconds for each.
IN_BLOCKS = [
    (1.5, "causal"),
    (1.5, "numbers"),
    (LEARNED, "random"),
    *(pytest.param(1.5, kind, marks=slow) for kind in ("none", "random", "padding")),
    *(pytest.param(LEARNED, kind, marks=slow) for kind in ("none", "causal", "numbers")),
]


@pytest.fixture
def blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    use_small_blocks(monkeypatch)


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
    return composed_attention(
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


def output_and_gradients(output: Tensor, leaves: list[Tensor]) -> list[Tensor]:
    """Return an output ``(2, 2, queries, VALUE_SIZE)``, and gradients of a weighted sum of it.

    The weight of a number is a factor of its query times one of its column, so that the gradients
    of all numbers differ. The factors are the same at each call.
    """
    query, *_ = leaves
    generator = torch.Generator().manual_seed(0)
    of_queries = torch.randn(query[..., :1].shape, generator=generator).to(output)
    upstream = of_queries * torch.arange(1, VALUE_SIZE + 1, device=DEVICE)
    return [output.detach(), *torch.autograd.grad(output, leaves, upstream.to(output.dtype))]


def assert_equal_to_float64(
    tensors: list[Tensor],
    alpha: Alpha,
    mask: dict[str, Any],
    *,
    tolerance: float = 1e-4,
    scale: float = 0.4,
) -> None:
    """Compare the kernels' output and gradients with those of PyTorch in float64.

    Args:
        tensors: query, key and value.
        alpha: a number, or one for each head.
        mask: arguments for a mask.
        tolerance: relative to the largest number of a tensor; by default hundreds of roundings of
            float32.
        scale: factor of the scores.
    """
    leaves = [*tensors, alpha] if isinstance(alpha, Tensor) else tensors
    options = {**mask, "scale": scale}
    results = output_and_gradients(kernels_output(tensors, alpha, options), leaves)
    exact = output_and_gradients(exact_output(tensors, alpha, options), leaves)
    for ours, expected in zip(results, exact, strict=True):
        bound = tolerance * max(float(expected.abs().max()), 1.0)
        torch.testing.assert_close(ours.double(), expected.double(), rtol=0, atol=bound)


def as_alpha(numbers: float | tuple[float, ...]) -> Alpha:
    """Return a number, or a tensor with a gradient."""
    if isinstance(numbers, tuple):
        return torch.tensor(numbers, device=DEVICE).requires_grad_()
    return numbers


# --- numbers ---------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [1.0, 1.37, 1.5, 2.0, (1.0, 1.6)])
def test_values_and_gradients_equal_float64(alpha: float | tuple[float, ...]) -> None:
    """All keys in one block."""
    assert_equal_to_float64(random_leaves(10, 12), as_alpha(alpha), mask={})


@pytest.mark.parametrize(("alpha", "kind"), IN_BLOCKS)
def test_values_and_gradients_in_blocks_equal_float64(
    blocks: None, alpha: float | tuple[float, ...], kind: str
) -> None:
    """Neither queries nor keys fill whole blocks."""
    queries, keys = (20, 18) if kind == "causal" else (18, 20)
    assert_equal_to_float64(
        random_leaves(queries, keys), as_alpha(alpha), mask_of(kind, queries, keys)
    )


def test_values_and_gradients_of_large_scores_equal_float64(blocks: None) -> None:
    assert_equal_to_float64(random_leaves(17, 19), 1.5, mask={}, tolerance=2e-4, scale=20.0)


@pytest.mark.parametrize(
    ("dtype", "tolerance"),  # of five roundings
    [(torch.float16, 5e-3), pytest.param(torch.bfloat16, 4e-2, marks=bfloat16_on_a_gpu)],
)
def test_values_and_gradients_of_half_types_equal_float64(
    blocks: None, dtype: torch.dtype, tolerance: float
) -> None:
    mask = mask_of("random", 18, 20)
    assert_equal_to_float64(random_leaves(18, 20, dtype=dtype), 1.5, mask, tolerance=tolerance)


@pytest.mark.parametrize(
    "dtype", [torch.float16, pytest.param(torch.bfloat16, marks=bfloat16_on_a_gpu)]
)
def test_half_types_are_returned(dtype: torch.dtype) -> None:
    output = kernels_output(random_leaves(3, 4, dtype=dtype), 1.5, options={})
    assert output.dtype == dtype


# --- memory of the inputs --------------------------------------------------------------------


def split_heads() -> list[Tensor]:
    """Return a query, key and value ``(2, 2, 9, SIZE)`` that are views of one projection."""
    joint = torch.randn(2, 9, 3, 2, SIZE, device=DEVICE, requires_grad=True)
    return [part.transpose(1, 2) for part in joint.unbind(2)]


def test_strides_change_nothing() -> None:
    tensors = split_heads()
    expected = kernels_output([tensor.contiguous() for tensor in tensors], 1.5, options={})
    assert torch.equal(kernels_output(tensors, 1.5, options={}), expected)


def test_keys_of_all_sentences_are_broadcast() -> None:
    query, key, value = split_heads()
    shared = key[:1].detach().requires_grad_()  # (1, 2, 9, SIZE)
    output = kernels_output([query, shared, value], 1.5, options={})
    expected = kernels_output([query, key[:1].expand_as(key), value], 1.5, options={})
    assert torch.equal(output, expected)


def test_the_gradient_of_keys_of_all_sentences_has_their_shape() -> None:
    query, key, value = split_heads()
    shared = key[:1].detach().requires_grad_()  # (1, 2, 9, SIZE)
    output = kernels_output([query, shared, value], 1.5, options={})
    (gradient,) = torch.autograd.grad(output.sum(), shared)
    assert gradient.shape == shared.shape


# --- grids -----------------------------------------------------------------------------------


def test_only_the_first_axis_of_a_grid_counts_heads(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other axes end at 65,535, and a large batch has more heads."""
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
    # One grid for each kernel, with a block of one query, or key, for each head.
    assert grids == [(9000 * 8,)] * 3
