"""Attention with entmax: its values beside the definition in float64, and PyTorch's own attention.

These tests run whichever code covers their arguments on a CPU.
"""

import math
from typing import NamedTuple

import pytest
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from onmt_entmax import entmax_attention, entmax_attention_weights
from onmt_entmax.sparse import backends, reference
from tests.sparse.attention_inputs import (
    ALPHAS_AND_MASKS,
    INF,
    Mask,
    Numbers,
    alpha_of,
    has_numbers,
    mask_arguments,
    masks,
    random_tensors,
    weights_oracle,
    with_gradients,
)
from tests.sparse.implementations import CPP

LARGE_SCALE = 30.0

# --- beside the definition -------------------------------------------------------------------


def rounding_of_weights(alphas: Tensor, scale: float | None, dtype: torch.dtype) -> float:
    """Return how far weights may be from the exact ones.

    Scores of up to 100 have two digits fewer behind the point, which small alphas multiply; and
    above alpha 2 a weight is a root of what is rounded, so that half of the digits are left.
    """
    if scale == LARGE_SCALE or alphas.max() > 2:
        return 5e-3 if dtype == torch.float32 else 1e-6
    return 2e-5 if dtype == torch.float32 else 1e-11


def assert_within(error: float, actual: Tensor, expected: Tensor, scale: float | None) -> None:
    """Check that a tensor has the expected shape, and numbers that are wrong by an error at most.

    Args:
        error: the largest allowed one.
        actual: what was computed, in float64.
        expected: what is right, in float64.
        scale: of the scores, for the message.
    """
    torch.testing.assert_close(
        actual, expected, rtol=0, atol=error, msg=lambda text: f"scale {scale}: {text}"
    )


float_types = pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
alphas_and_masks = pytest.mark.parametrize(("alpha", "kind"), ALPHAS_AND_MASKS)
SCALES = (None, -0.02, LARGE_SCALE, 0.0)


@float_types
@alphas_and_masks
def test_weights_equal_the_definition(alpha: Numbers, kind: str, dtype: torch.dtype) -> None:
    mask = masks(5, 7)[kind]
    query, key, _ = random_tensors(3, 2, dtype=dtype)
    form = alpha_of(alpha, dtype)
    alphas = torch.as_tensor(form, dtype=torch.float64)
    for scale in SCALES:
        options = {**mask_arguments(mask), "scale": scale}
        weights = entmax_attention_weights(query, key, alpha=form, **options).double()
        expected = weights_oracle(query, key, alphas, mask, scale)
        assert_within(rounding_of_weights(alphas, scale, dtype), weights, expected, scale)


@float_types
@alphas_and_masks
def test_the_output_equals_the_definition(alpha: Numbers, kind: str, dtype: torch.dtype) -> None:
    mask = masks(5, 7)[kind]
    query, key, value = random_tensors(3, 2, dtype=dtype)
    form = alpha_of(alpha, dtype)
    alphas = torch.as_tensor(form, dtype=torch.float64)
    for scale in SCALES:
        options = {**mask_arguments(mask), "scale": scale}
        output = entmax_attention(query, key, value, alpha=form, **options).double()
        expected = weights_oracle(query, key, alphas, mask, scale) @ value.double()
        # An output is a sum over 7 keys.
        rounding = 10 * rounding_of_weights(alphas, scale, dtype)
        assert_within(rounding, output, expected, scale)


@float_types
@pytest.mark.parametrize(
    ("alpha", "kind"),
    [pair for pair in ALPHAS_AND_MASKS if pair[1] not in ("none", "causal", "bias")],
)
def test_weights_of_closed_keys_are_exactly_0(
    alpha: Numbers, kind: str, dtype: torch.dtype
) -> None:
    mask = masks(5, 7)[kind]
    assert isinstance(mask, Tensor)
    closed = mask == -INF if has_numbers(mask) else ~mask
    query, key, _ = random_tensors(3, 2, dtype=dtype)
    form = alpha_of(alpha, dtype)
    for scale in SCALES:
        weights = entmax_attention_weights(query, key, alpha=form, attn_mask=mask, scale=scale)
        assert not weights[closed.expand(weights.shape)].any(), f"scale {scale}"


class Outcome(NamedTuple):
    """Attention with one alpha for all heads, given as a tensor and as a number."""

    output: Tensor
    gradients: tuple[Tensor, ...]
    """Gradients in query, key, value and alphas."""
    output_of_number: Tensor
    gradients_of_number: tuple[Tensor, ...]
    """Gradients in query, key and value."""


def outcome_of(alpha: float, mask: Mask, queries: int, keys: int, dtype: torch.dtype) -> Outcome:
    """Return an outcome whose three sentences have small, ordinary and large scores."""
    torch.manual_seed(3)
    query, key, value = random_tensors(3, 2, queries=queries, keys=keys, dtype=dtype)
    query = query * torch.tensor([0.01, 1.0, 6.0], dtype=dtype).view(3, 1, 1, 1)
    tensors = with_gradients([query, key, value])
    alphas = torch.tensor([alpha, alpha], dtype=dtype, requires_grad=True)
    if isinstance(mask, Tensor) and has_numbers(mask):
        mask = mask.to(dtype)
    output = entmax_attention(*tensors, alpha=alphas, **mask_arguments(mask))
    of_number = entmax_attention(*tensors, alpha=alpha, **mask_arguments(mask))
    upstream = torch.randn_like(output)
    return Outcome(
        output=output,
        gradients=torch.autograd.grad(output, [*tensors, alphas], upstream),
        output_of_number=of_number,
        gradients_of_number=torch.autograd.grad(of_number, tensors, upstream),
    )


@pytest.mark.parametrize(
    ("alpha", "kind", "dtype"),
    [
        (1.0, "none", torch.float32),
        (1.0001, "causal", torch.float64),
        (1.1, "random", torch.float64),
        (1.37, "holes", torch.float32),
        (1.5, "none", torch.float64),
        (1.5, "causal", torch.float64),
        (1.95, "random", torch.float32),
        (2.0, "holes", torch.float64),
        (2.0, "none", torch.float64),
        (2.5, "causal", torch.float32),
        (3.0, "random", torch.float64),
    ],
)
@pytest.mark.parametrize(
    ("queries", "keys"), [(5, 7), (6, 70)], ids=["keys fill no vector", "keys fill several"]
)
@pytest.mark.parametrize("implementation", CPP, indirect=True)
@pytest.mark.usefixtures("implementation")
def test_cpp_agrees_with_pytorch(
    alpha: float,
    kind: str,
    dtype: torch.dtype,
    queries: int,
    keys: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mask = masks(queries, keys)[kind]
    fused = outcome_of(alpha, mask, queries, keys, dtype)
    monkeypatch.setattr(backends, "backend_for", lambda *_: reference)
    expected = outcome_of(alpha, mask, queries, keys, dtype)
    tolerance = 1e-10 if dtype == torch.float64 else 1e-4
    torch.testing.assert_close(fused, expected, rtol=tolerance, atol=tolerance)


# --- beside PyTorch's own --------------------------------------------------------------------


class BesideTorch(NamedTuple):
    """Softmax attention of the same tensors: ours and PyTorch's."""

    tensors: list[Tensor]
    ours: Tensor
    theirs: Tensor


@pytest.fixture(params=["none", "causal", "padding", "bias"])
def softmax(request: pytest.FixtureRequest) -> BesideTorch:
    mask = masks(5, 7)[request.param]
    tensors = with_gradients(random_tensors(3, 2))
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


# --- numbers that are not finite -------------------------------------------------------------


@pytest.mark.parametrize("alpha", [1.0, 1.3, 1.5, 2.0, 2.5])
@pytest.mark.parametrize("bad", [math.nan, INF])
def test_what_is_not_finite_stays_in_its_row(alpha: float, bad: float) -> None:
    query, key, value = random_tensors(2)
    query[1, 3, 0] = bad
    output = entmax_attention(query, key.abs(), value, alpha=alpha)
    expected = entmax_attention(query.clamp(-9, 9).nan_to_num(0), key.abs(), value, alpha=alpha)
    assert output[1, 3].isnan().all()
    is_finite = torch.ones(2, 5, dtype=torch.bool)
    is_finite[1, 3] = False
    assert torch.equal(output[is_finite], expected[is_finite])
