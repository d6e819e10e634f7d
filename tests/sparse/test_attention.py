"""Attention with entmax equals its definition in float64, with every kind of mask.

These tests run whichever code covers their arguments on a CPU.
"""

import math

import pytest
import torch
from torch import Tensor

from onmt_entmax import entmax_attention, entmax_attention_weights
from tests.sparse.attention_inputs import (
    ALPHAS_AND_MASKS,
    INF,
    Numbers,
    alpha_of,
    has_numbers,
    mask_arguments,
    masks,
    random_tensors,
    weights_oracle,
)

LARGE_SCALE = 30.0
# The default, one below 0, a large one, and 0. They share a test: each case takes longer to set up
# than to run.
SCALES = (None, -0.02, LARGE_SCALE, 0.0)

float_types = pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
alphas_and_masks = pytest.mark.parametrize(("alpha", "kind"), ALPHAS_AND_MASKS)


def rounding_of_weights(alphas: Tensor, scale: float | None, dtype: torch.dtype) -> float:
    """Return how far weights may be from the exact ones.

    Scores of up to 100 have two digits fewer behind the point, and for alphas near 1, powers
    multiply their rounding. Above alpha 2, a weight is a root of a rounded number, which may have
    lost half of its digits.

    Args:
        alphas: alpha of all heads, or one of each.
        scale: one of `SCALES`.
        dtype: type of queries and keys.
    """
    if scale == LARGE_SCALE or alphas.max() > 2:
        return 5e-3 if dtype == torch.float32 else 1e-6
    return 2e-5 if dtype == torch.float32 else 1e-11


def assert_within(error: float, actual: Tensor, expected: Tensor, scale: float | None) -> None:
    """Check that a tensor has the expected shape, and its numbers up to an error.

    Args:
        error: the largest allowed difference.
        actual: the computed tensor, in float64.
        expected: the right tensor, in float64.
        scale: scale of the scores, for the message.
    """
    torch.testing.assert_close(
        actual, expected, rtol=0, atol=error, msg=lambda text: f"scale {scale}: {text}"
    )


@float_types
@alphas_and_masks
def test_weights_equal_the_definition(alpha: Numbers, kind: str, dtype: torch.dtype) -> None:
    mask = masks(5, 7)[kind]
    query, key, _ = random_tensors(3, 2, dtype=dtype)
    alpha_argument = alpha_of(alpha, dtype)
    alphas = torch.as_tensor(alpha_argument, dtype=torch.float64)
    for scale in SCALES:
        options = {**mask_arguments(mask), "scale": scale}
        weights = entmax_attention_weights(query, key, alpha=alpha_argument, **options).double()
        expected = weights_oracle(query, key, alphas, mask, scale)
        assert_within(rounding_of_weights(alphas, scale, dtype), weights, expected, scale)


@float_types
@alphas_and_masks
def test_the_output_equals_the_definition(alpha: Numbers, kind: str, dtype: torch.dtype) -> None:
    mask = masks(5, 7)[kind]
    query, key, value = random_tensors(3, 2, dtype=dtype)
    alpha_argument = alpha_of(alpha, dtype)
    alphas = torch.as_tensor(alpha_argument, dtype=torch.float64)
    for scale in SCALES:
        options = {**mask_arguments(mask), "scale": scale}
        output = entmax_attention(query, key, value, alpha=alpha_argument, **options).double()
        expected = weights_oracle(query, key, alphas, mask, scale) @ value.double()
        # An output is a sum over 7 keys.
        rounding = 10 * rounding_of_weights(alphas, scale, dtype)
        assert_within(rounding, output, expected, scale)


# The masks whose tensor closes keys.
CLOSING = ("padding", "random", "holes", "nothing")


@float_types
@pytest.mark.parametrize(
    ("alpha", "kind"), [(alpha, kind) for alpha, kind in ALPHAS_AND_MASKS if kind in CLOSING]
)
def test_weights_of_closed_keys_are_exactly_0(
    alpha: Numbers, kind: str, dtype: torch.dtype
) -> None:
    mask = masks(5, 7)[kind]
    assert isinstance(mask, Tensor)
    closed = mask == -INF if has_numbers(mask) else ~mask
    query, key, _ = random_tensors(3, 2, dtype=dtype)
    options = {"alpha": alpha_of(alpha, dtype), "attn_mask": mask}
    for scale in SCALES:
        weights = entmax_attention_weights(query, key, **options, scale=scale)
        assert not weights[closed.expand(weights.shape)].any(), f"scale {scale}"


@pytest.mark.parametrize("alpha", [1.0, 1.3, 1.5, 2.0, 2.5])
@pytest.mark.parametrize("bad", [math.nan, INF])
def test_a_query_that_is_not_finite_makes_its_own_output_nan(alpha: float, bad: float) -> None:
    query, key, value = random_tensors(2)
    key = key.abs()  # so that infinity times a key is infinity, not nan
    expected = entmax_attention(query, key, value, alpha=alpha)
    expected[1, 3] = math.nan
    query[1, 3, 0] = bad
    output = entmax_attention(query, key, value, alpha=alpha)
    torch.testing.assert_close(output, expected, rtol=0, atol=0, equal_nan=True)
