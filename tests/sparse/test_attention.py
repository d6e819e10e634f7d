"""Attention with entmax: its values, against a slow reference in float64 and PyTorch's own.

These tests run whichever code covers their arguments on a CPU.
"""

import math
from itertools import cycle
from typing import NamedTuple

import pytest
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from onmt_entmax import entmax_attention, entmax_attention_weights
from onmt_entmax.sparse import backends, reference
from tests.sparse.attention_inputs import (
    INF,
    KINDS,
    Mask,
    Numbers,
    alpha_of,
    has_numbers,
    inputs,
    leaves,
    masks,
    options,
    weights_oracle,
)
from tests.sparse.conftest import CPP

ALPHAS = (1.0, 1.0001, 1.2, 1.33, 1.5, 1.9999, 2.0, 2.5, 3.5, (1.0, 1.7), (1.5, 2.6))
# Each alpha with two kinds of mask, and each kind with several alphas: 11 is no multiple of 7.
PAIRS = list(zip(ALPHAS * 2, cycle(KINDS)))
LARGE_SCALE = 30.0
SCALES = (None, -0.02, LARGE_SCALE, 0.0)

# --- beside the definition -------------------------------------------------------------------


def rounding_of_weights(alphas: Tensor, scale: float | None, dtype: torch.dtype) -> float:
    """Return how far weights may be from the exact ones.

    Scores of up to 100 have fewer digits behind the point, and above alpha 2 the slope at the
    threshold is infinite.
    """
    if scale == LARGE_SCALE or alphas.max() > 2:
        return 5e-3 if dtype == torch.float32 else 1e-6
    return 2e-5 if dtype == torch.float32 else 1e-11


float_types = pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
pairs = pytest.mark.parametrize(("alpha", "kind"), PAIRS)


@float_types
@pairs
def test_weights_equal_the_definition(alpha: Numbers, kind: str, dtype: torch.dtype) -> None:
    mask = masks(5, 7)[kind]
    query, key, _ = inputs(3, 2, dtype=dtype)
    form = alpha_of(alpha, dtype)
    alphas = torch.as_tensor(form, dtype=torch.float64)
    for scale in SCALES:
        weights = entmax_attention_weights(query, key, alpha=form, **options(mask), scale=scale)
        expected = weights_oracle(query, key, alphas, mask, scale)
        rounding = rounding_of_weights(alphas, scale, dtype)
        torch.testing.assert_close(weights.double(), expected, rtol=0, atol=rounding)


@float_types
@pairs
def test_the_output_equals_the_definition(alpha: Numbers, kind: str, dtype: torch.dtype) -> None:
    mask = masks(5, 7)[kind]
    query, key, value = inputs(3, 2, dtype=dtype)
    form = alpha_of(alpha, dtype)
    alphas = torch.as_tensor(form, dtype=torch.float64)
    for scale in SCALES:
        output = entmax_attention(query, key, value, alpha=form, **options(mask), scale=scale)
        expected = weights_oracle(query, key, alphas, mask, scale) @ value.double()
        # An output is a sum over 7 keys.
        rounding = 10 * rounding_of_weights(alphas, scale, dtype)
        torch.testing.assert_close(output.double(), expected, rtol=0, atol=rounding)


@float_types
@pytest.mark.parametrize(
    ("alpha", "kind"), [pair for pair in PAIRS if pair[1] not in ("none", "causal", "bias")]
)
def test_weights_of_closed_keys_are_exactly_0(
    alpha: Numbers, kind: str, dtype: torch.dtype
) -> None:
    mask = masks(5, 7)[kind]
    assert isinstance(mask, Tensor)
    closed = mask == -INF if has_numbers(mask) else ~mask
    query, key, _ = inputs(3, 2, dtype=dtype)
    form = alpha_of(alpha, dtype)
    for scale in SCALES:
        weights = entmax_attention_weights(query, key, alpha=form, attn_mask=mask, scale=scale)
        assert not weights[closed.expand(weights.shape)].any()


class Outcome(NamedTuple):
    """Attention with one alpha for all heads, given as a tensor and as a number."""

    output: Tensor
    gradients: tuple[Tensor, ...]
    """In query, key, value and alphas."""
    output_of_number: Tensor
    gradients_of_number: tuple[Tensor, ...]
    """In query, key and value."""


def outcome_of(alpha: float, mask: Mask, queries: int, keys: int, dtype: torch.dtype) -> Outcome:
    """Return an outcome whose three sentences have small, ordinary and large scores."""
    torch.manual_seed(3)
    query, key, value = inputs(3, 2, queries=queries, keys=keys, dtype=dtype)
    query = query * torch.tensor([0.01, 1.0, 6.0], dtype=dtype).view(3, 1, 1, 1)
    tensors = leaves([query, key, value])
    alphas = torch.tensor([alpha, alpha], dtype=dtype, requires_grad=True)
    if isinstance(mask, Tensor) and has_numbers(mask):
        mask = mask.to(dtype)
    output = entmax_attention(*tensors, alpha=alphas, **options(mask))
    of_number = entmax_attention(*tensors, alpha=alpha, **options(mask))
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
@pytest.mark.parametrize("device", CPP, indirect=True)
@pytest.mark.usefixtures("device")
def test_cpp_agrees_with_pytorch(
    alpha: float, kind: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C++ runs with each instruction set, for keys that fill no vector and that fill several."""
    for queries, keys in ((5, 7), (6, 70)):
        mask = masks(queries, keys)[kind]
        fused = outcome_of(alpha, mask, queries, keys, dtype)
        with monkeypatch.context() as patch:
            patch.setattr(backends, "backend_for", lambda *_: reference)
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
    tensors = leaves(inputs(3, 2))
    ours = entmax_attention(*tensors, alpha=1.0, **options(mask), scale=0.7)
    theirs = scaled_dot_product_attention(*tensors, **options(mask), scale=0.7)
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


# --- shapes, strides and types ---------------------------------------------------------------


class TestLeadingDimensionsThatBroadcast:
    """Of three sentences and two heads, sentences share queries and values, heads share keys."""

    @pytest.fixture
    def alpha(self) -> Tensor:
        return torch.tensor([1.2, 1.8], requires_grad=True)

    @pytest.fixture
    def tensors(self) -> list[Tensor]:
        return leaves([torch.randn(1, 2, 5, 4), torch.randn(3, 1, 7, 4), torch.randn(2, 7, 3)])

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
    tensors, numbers = inputs(3, 2), torch.randn(shape)
    mask = numbers > 0.2 if is_boolean else numbers
    expanded = mask.expand(3, 2, 5, 7).contiguous()
    expected = entmax_attention(*tensors, alpha=1.5, attn_mask=expanded)
    output = entmax_attention(*tensors, alpha=1.5, attn_mask=mask)
    torch.testing.assert_close(output, expected)


@mask_shapes
def test_masks_that_broadcast_have_gradients_of_their_shape(shape: tuple[int, ...]) -> None:
    mask = torch.randn(shape, requires_grad=True)
    output = entmax_attention(*inputs(3, 2), alpha=1.5, attn_mask=mask)
    (gradient,) = torch.autograd.grad(output.sum(), mask)
    assert gradient.shape == shape


half_types = pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
some_alphas = pytest.mark.parametrize("alpha", [1.0, 1.5, (1.5, 2.2)])


@half_types
@some_alphas
def test_half_types_are_computed_in_float32(dtype: torch.dtype, alpha: Numbers) -> None:
    tensors, form = [tensor.to(dtype) for tensor in inputs(3, 2)], alpha_of(alpha)
    output = entmax_attention(*tensors, alpha=form)
    wide = entmax_attention(*(tensor.float() for tensor in tensors), alpha=form)
    torch.testing.assert_close(output, wide.to(dtype))


@half_types
@some_alphas
def test_half_types_are_returned(dtype: torch.dtype, alpha: Numbers) -> None:
    tensors = [tensor.to(dtype) for tensor in inputs(3, 2)]
    assert entmax_attention(*tensors, alpha=alpha_of(alpha)).dtype == dtype


@half_types
@some_alphas
def test_weights_of_half_types_are_float32(dtype: torch.dtype, alpha: Numbers) -> None:
    query, key, _ = (tensor.to(dtype) for tensor in inputs(3, 2))
    assert entmax_attention_weights(query, key, alpha=alpha_of(alpha)).dtype == torch.float32


class TestAutocast:
    @pytest.fixture
    def tensors(self) -> list[Tensor]:
        return leaves(inputs(3, 2))

    def test_casts_as_for_torch(self, tensors: list[Tensor]) -> None:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            ours = entmax_attention(*tensors, alpha=1.0)
            theirs = scaled_dot_product_attention(*tensors)
        assert ours.dtype == theirs.dtype == torch.bfloat16
        torch.testing.assert_close(ours, theirs, rtol=0.02, atol=0.02)

    def test_leaves_gradients_in_float32(self, tensors: list[Tensor]) -> None:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            output = entmax_attention(*tensors, alpha=1.0)
        gradients = torch.autograd.grad(output.sum(), tensors)
        assert all(gradient.dtype == torch.float32 for gradient in gradients)

    def test_leaves_float64_alone(self, tensors: list[Tensor]) -> None:
        double = [tensor.double() for tensor in tensors]
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert entmax_attention(*double, alpha=1.5).dtype == torch.float64


# --- numbers that are not finite -------------------------------------------------------------


@pytest.mark.parametrize(("alpha", "bad"), zip([1.0, 1.3, 1.5, 2.0, 2.5], cycle([math.nan, INF])))
def test_what_is_not_finite_stays_in_its_row(alpha: float, bad: float) -> None:
    query, key, value = inputs(2)
    query[1, 3, 0] = bad
    output = entmax_attention(query, key.abs(), value, alpha=alpha)
    expected = entmax_attention(query.clamp(-9, 9).nan_to_num(0), key.abs(), value, alpha=alpha)
    assert output[1, 3].isnan().all()
    is_finite = torch.ones(2, 5, dtype=torch.bool)
    is_finite[1, 3] = False
    assert torch.equal(output[is_finite], expected[is_finite])
