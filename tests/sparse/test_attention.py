"""Attention with entmax: against a slow reference in float64, torch's own, and finite differences.

These tests run whichever code covers their arguments on a CPU.
"""

import math
from collections.abc import Callable
from itertools import cycle
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from onmt_entmax import entmax_attention, entmax_attention_weights
from onmt_entmax.sparse import backends, reference
from tests.oracles import entmax_oracle

INF = float("inf")
ALPHAS = (1.0, 1.0001, 1.2, 1.33, 1.5, 1.9999, 2.0, 2.5, 3.5)
KINDS = ("none", "causal", "padding", "random", "bias", "holes", "nothing")
# Each alpha with several masks, and each mask with several alphas.
PAIRS = list(zip([*ALPHAS, (1.0, 1.7), (1.5, 2.6)] * 2, cycle(KINDS)))
Mask = Tensor | str | None


def weights_oracle(
    query: Tensor, key: Tensor, alpha: Tensor, mask: Mask, scale: float | None = None
) -> Tensor:
    """Return attention weights in float64, by definition."""
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    scores = query.double() @ key.double().transpose(-1, -2) * scale
    if isinstance(mask, str):
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    if mask is not None and mask.dtype == torch.bool:
        mask = torch.zeros(mask.shape).masked_fill(~mask, -INF)
    if mask is not None:
        scores = scores + mask.double()
    weights = torch.zeros_like(scores)
    alphas = alpha.detach().double().view(-1, 1).expand(scores.shape[:-1])
    has_keys = ~(scores == -INF).all(-1)
    for number in alphas.unique().tolist():
        rows = has_keys & (alphas == number)
        weights[rows] = entmax_oracle(scores[rows], number)
    return weights


def inputs(
    *leading: int, queries: int = 5, keys: int = 7, size: int = 4, dtype: Any = torch.float32
) -> list[Tensor]:
    """Return a random query, key and value, with values of size 3."""
    shapes = ((queries, size), (keys, size), (keys, 3))
    return [torch.randn(*leading, *shape, dtype=dtype) for shape in shapes]


def masks(queries: int, keys: int) -> dict[str, Mask]:
    """Return one mask of each kind, for two heads and three sentences."""
    padding = torch.arange(keys) < torch.tensor([keys, 2, 4]).view(3, 1, 1, 1)
    random = torch.rand(3, 2, queries, keys) < 0.6
    random[1, 0, 2] = False
    bias = torch.randn(2, queries, keys)
    holes = torch.where(torch.rand(queries, keys) < 0.7, torch.randn(queries, keys), -INF)
    holes[1] = -INF
    return {
        "none": None,
        "causal": "causal",
        "padding": padding,
        "random": random,
        "bias": bias,
        "holes": holes,
        "nothing": torch.zeros(queries, keys, dtype=torch.bool),
    }


def options(mask: Mask) -> dict[str, Any]:
    """Return a mask as arguments."""
    return {"is_causal": True} if isinstance(mask, str) else {"attn_mask": mask}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("alpha", "kind"), PAIRS)
def test_equals_the_oracle(alpha: Any, kind: str, dtype: torch.dtype) -> None:
    mask = masks(5, 7)[kind]
    query, key, value = inputs(3, 2, dtype=dtype)
    alpha = torch.tensor(alpha, dtype=dtype) if isinstance(alpha, tuple) else alpha
    alphas = torch.as_tensor(alpha, dtype=torch.float64)
    for scale in (None, -0.02, 30.0, 0.0):
        expected = weights_oracle(query, key, alphas, mask, scale)
        weights = entmax_attention_weights(query, key, alpha=alpha, **options(mask), scale=scale)
        output = entmax_attention(query, key, value, alpha=alpha, **options(mask), scale=scale)
        # The rounding of scores up to 100; above 2 the slope at the threshold is infinite.
        close = 2e-5 if dtype == torch.float32 else 1e-11
        if scale == 30 or alphas.max() > 2:
            close = 5e-3 if dtype == torch.float32 else 1e-6
        torch.testing.assert_close(weights.double(), expected, rtol=0, atol=close)
        torch.testing.assert_close(
            output.double(), expected @ value.double(), rtol=0, atol=10 * close
        )
        if isinstance(mask, Tensor):
            closed = ~mask if mask.dtype == torch.bool else mask == -INF
            assert (weights[closed.expand(weights.shape)] == 0).all()


@pytest.mark.parametrize("kind", ["none", "causal", "padding", "bias"])
def test_softmax_is_that_of_torch(kind: str) -> None:
    mask = masks(5, 7)[kind]
    tensors = [tensor.requires_grad_() for tensor in inputs(3, 2)]
    ours = entmax_attention(*tensors, alpha=1.0, **options(mask), scale=0.7)
    theirs = scaled_dot_product_attention(*tensors, **options(mask), scale=0.7)
    torch.testing.assert_close(ours, theirs)
    upstream = torch.randn_like(ours)
    for one, other in zip(
        torch.autograd.grad(ours, tensors, upstream),
        torch.autograd.grad(theirs, tensors, upstream),
        strict=True,
    ):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize(("alpha", "kind"), zip(ALPHAS * 2, cycle(KINDS)))
def test_gradients_by_finite_differences(alpha: float, kind: str) -> None:
    """In query, key, value, a mask of numbers, and alpha."""
    query, key, value = inputs(3, 2, queries=3, keys=4, dtype=torch.float64)
    mask = masks(3, 4)[kind]
    numbers = isinstance(mask, Tensor) and mask.is_floating_point()
    mask = mask.double() if numbers else mask
    tensors = [query, key, value, *([mask] if numbers else [])]
    tensors = [tensor.requires_grad_() for tensor in tensors]

    def function(query: Tensor, key: Tensor, value: Tensor, *rest: Tensor) -> Tensor:
        with_mask = {"attn_mask": rest[0]} if numbers else options(mask)
        return entmax_attention(query, key, value, alpha=alpha, **with_mask)

    assert torch.autograd.gradcheck(function, tensors)


@pytest.mark.parametrize(
    ("alpha", "kind"), [((1.1, 1.6), "none"), ((1.9, 2.4), "causal"), ((1.001, 3.0), "random")]
)
def test_gradient_in_alpha_by_finite_differences(alpha: tuple[float, ...], kind: str) -> None:
    tensors = inputs(3, 2, queries=3, keys=4, dtype=torch.float64)
    tensors.append(torch.tensor(alpha, dtype=torch.float64))
    tensors = [tensor.requires_grad_() for tensor in tensors]
    mask = masks(3, 4)[kind]

    def attention(query: Tensor, key: Tensor, value: Tensor, alpha: Tensor) -> Tensor:
        return entmax_attention(query, key, value, alpha=alpha, **options(mask))

    assert torch.autograd.gradcheck(attention, tensors)


def test_gradient_at_softmax_continues_that_above() -> None:
    """At alpha = 1 there is no difference quotient from below."""
    query, key, value = inputs(3, 2, dtype=torch.float64)

    def gradient(number: float) -> Tensor:
        alpha = torch.tensor([number, number], dtype=torch.float64, requires_grad=True)
        return torch.autograd.grad(entmax_attention(query, key, value, alpha=alpha).sum(), alpha)[0]

    torch.testing.assert_close(gradient(1.0), gradient(1 + 1e-7), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("alpha", [1.0, 1.5, 2.5, (1.0, 1.6)])
def test_a_query_without_keys_gives_zeros_and_no_gradient(alpha: Any) -> None:
    alpha = torch.tensor(alpha, requires_grad=True) if isinstance(alpha, tuple) else alpha
    tensors = [tensor.requires_grad_() for tensor in inputs(3, 2)]
    closed = torch.zeros(5, 7, requires_grad=True)
    mask = closed + torch.where(torch.arange(5) < 2, 0.0, -INF).view(5, 1)
    output = entmax_attention(*tensors, alpha=alpha, attn_mask=mask)
    assert (output[..., 2:, :] == 0).all()
    assert (output[..., :2, :] != 0).all()
    leaves = [*tensors, closed, *([alpha] if isinstance(alpha, Tensor) else [])]
    gradients = torch.autograd.grad(output[..., 2:, :].sum(), leaves, retain_graph=True)
    assert all((gradient == 0).all() for gradient in gradients)
    gradients = torch.autograd.grad(output.sum(), leaves)
    assert all(gradient.isfinite().all() for gradient in gradients)


def test_leading_dimensions_broadcast() -> None:
    query = torch.randn(1, 2, 5, 4)
    key, value = torch.randn(3, 1, 7, 4), torch.randn(2, 7, 3)
    whole = [tensor.expand(3, 2, -1, -1).contiguous() for tensor in (query, key, value)]
    alpha = torch.tensor([1.2, 1.8])
    tensors = [tensor.requires_grad_() for tensor in (query, key, value, alpha)]
    output = entmax_attention(*tensors[:3], alpha=alpha)
    torch.testing.assert_close(output, entmax_attention(*whole, alpha=alpha))
    gradients = torch.autograd.grad(output.sum(), tensors)
    assert [gradient.shape for gradient in gradients] == [tensor.shape for tensor in tensors]
    two = [tensor[0, 0] for tensor in whole]
    torch.testing.assert_close(entmax_attention(*two, alpha=1.2), output[0, 0])


def test_strides_change_nothing() -> None:
    """As models have them: heads split from one projection, expanded, from the middle."""
    joint = torch.randn(3, 6, 3, 2, 8)
    query, key, value = (part.transpose(1, 2) for part in joint.unbind(2))
    expected = entmax_attention(query.contiguous(), key.contiguous(), value.contiguous(), alpha=1.5)
    assert torch.equal(entmax_attention(query, key, value, alpha=1.5), expected)
    reversed_strides = [tensor.mT.contiguous().mT for tensor in (query, key, value)]
    torch.testing.assert_close(entmax_attention(*reversed_strides, alpha=1.5), expected)
    mask = torch.randn(6, 6).t()
    torch.testing.assert_close(
        entmax_attention(query, key, value, alpha=1.5, attn_mask=mask),
        entmax_attention(query, key, value, alpha=1.5, attn_mask=mask.contiguous()),
    )


@pytest.mark.parametrize("shape", [(3, 1, 5, 1), (5, 1), (7,), (2, 1, 1), ()])
def test_masks_broadcast(shape: tuple[int, ...]) -> None:
    query, key, value = inputs(3, 2)
    numbers = torch.randn(shape, requires_grad=True)
    for mask in (numbers > 0.2, numbers):
        whole = mask.expand(3, 2, 5, 7).contiguous()
        expected = entmax_attention(query, key, value, alpha=1.5, attn_mask=whole)
        torch.testing.assert_close(
            entmax_attention(query, key, value, alpha=1.5, attn_mask=mask), expected
        )
    output = entmax_attention(query, key, value, alpha=1.5, attn_mask=numbers)
    (gradient,) = torch.autograd.grad(output.sum(), numbers)
    assert gradient.shape == shape


@pytest.mark.parametrize("alpha", [1.5, (1.3, 1.8), (1.5, 2.5)])
class TestDropout:
    @pytest.fixture
    def form(self, alpha: Any) -> float | Tensor:
        """Alpha as a number, or as a tensor with one for each head."""
        return torch.tensor(alpha, dtype=torch.float64) if isinstance(alpha, tuple) else alpha

    @pytest.fixture
    def tensors(self) -> list[Tensor]:
        """A query, a key, and values that make the weights the output."""
        query, key, _ = inputs(3, 2, queries=40, keys=30, dtype=torch.float64)
        return [query, key, torch.eye(30, dtype=torch.float64).expand(3, 2, 30, 30)]

    def test_drops_its_share_of_the_weights(self, tensors: list[Tensor], form: Any) -> None:
        weights = entmax_attention_weights(*tensors[:2], alpha=form)
        dropped = entmax_attention(*tensors, alpha=form, dropout_p=0.3)
        kept = dropped != 0
        torch.testing.assert_close(dropped[kept], weights[kept] / 0.7)
        share = float((dropped[weights > 0] == 0).double().mean())
        assert abs(share - 0.3) < 0.03

    def test_of_1_drops_all(self, tensors: list[Tensor], form: Any) -> None:
        assert (entmax_attention(*tensors, alpha=form, dropout_p=1.0) == 0).all()

    @pytest.fixture
    def leaves(self) -> list[Tensor]:
        small = inputs(3, 2, queries=2, keys=3, dtype=torch.float64)
        return [tensor.requires_grad_() for tensor in small]

    def attention(self, form: Any) -> Callable[..., Tensor]:
        """Return attention that drops the same weights at each call."""

        def seeded(*tensors: Tensor) -> Tensor:
            torch.manual_seed(5)
            return entmax_attention(*tensors, alpha=form, dropout_p=0.4)

        return seeded

    def test_has_exact_gradients(self, leaves: list[Tensor], form: Any) -> None:
        assert torch.autograd.gradcheck(self.attention(form), leaves)

    def test_has_the_same_gradients_with_a_graph(self, leaves: list[Tensor], form: Any) -> None:
        output = self.attention(form)(*leaves).square().sum()
        plain = torch.autograd.grad(output, leaves, retain_graph=True)
        torch.testing.assert_close(torch.autograd.grad(output, leaves, create_graph=True), plain)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("alpha", [1.0, 1.5, (1.5, 2.2)])
def test_half_types_are_computed_in_float32(dtype: torch.dtype, alpha: Any) -> None:
    alpha = torch.tensor(alpha) if isinstance(alpha, tuple) else alpha
    tensors = [tensor.to(dtype) for tensor in inputs(3, 2)]
    output = entmax_attention(*tensors, alpha=alpha)
    assert output.dtype == dtype
    wide = entmax_attention(*(tensor.float() for tensor in tensors), alpha=alpha)
    torch.testing.assert_close(output, wide.to(dtype))
    assert entmax_attention_weights(*tensors[:2], alpha=alpha).dtype == torch.float32


class TestAutocast:
    @pytest.fixture
    def tensors(self) -> list[Tensor]:
        return [tensor.requires_grad_() for tensor in inputs(3, 2)]

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


@pytest.mark.parametrize("alpha", [1.5, 2.0, (1.2, 1.7)])
def test_second_derivatives(alpha: Any) -> None:
    alpha = torch.tensor(alpha, dtype=torch.float64) if isinstance(alpha, tuple) else alpha
    tensors = [t.requires_grad_() for t in inputs(2, queries=2, keys=3, dtype=torch.float64)]
    assert torch.autograd.gradgradcheck(
        lambda *leaves: entmax_attention(*leaves, alpha=alpha), tensors
    )


@pytest.mark.parametrize(
    ("sentences", "queries", "keys"), [(2, 3, 0), (2, 0, 0), (0, 3, 0)], ids=str
)
def test_empty_tensors_give_zeros(sentences: int, queries: int, keys: int) -> None:
    query, key = torch.randn(sentences, queries, 4), torch.randn(sentences, keys, 4)
    value = torch.randn(sentences, keys, 5)
    assert torch.equal(entmax_attention(query, key, value), torch.zeros(sentences, queries, 5))


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "alpha below 1": ({"alpha": 0.9}, "alpha must be a number from 1"),
    "alphas below 1": ({"alpha": torch.tensor([1.5, 0.5])}, "every alpha must be a number"),
    "alphas that do not fit": ({"alpha": torch.ones(3)}, "does not fit the heads"),
    "both masks": ({"attn_mask": torch.ones(5, 7).bool(), "is_causal": True}, "not both"),
    "mask of integers": ({"attn_mask": torch.ones(5, 7).long()}, "boolean or floating point"),
    "mask that does not fit": ({"attn_mask": torch.ones(5, 6)}, "does not broadcast"),
    "dropout": ({"dropout_p": 1.5}, "dropout_p must be from 0 to 1"),
    "sizes": ({"key": torch.ones(3, 2, 7, 5)}, "of size 4, key of size 5"),
    "keys": ({"value": torch.ones(3, 2, 6, 3)}, "key has length 7, value 6"),
    "heads": ({"value": torch.ones(3, 5, 7, 3)}, "leading dimensions do not broadcast"),
    "groups": ({"key": torch.ones(3, 4, 7, 4), "enable_gqa": True}, "a divisor of the 2 heads"),
    "groups of values": ({"key": torch.ones(3, 1, 7, 4), "enable_gqa": True}, "key has 1, value 2"),
    "no heads": ({"query": torch.ones(5, 4), "enable_gqa": True}, "needs tensors with heads"),
}


@pytest.mark.parametrize("name", list(BAD))
def test_bad_arguments_are_refused(name: str) -> None:
    arguments, message = BAD[name]
    query, key, value = inputs(3, 2)
    with pytest.raises(ValueError, match=message):
        entmax_attention(**{"query": query, "key": key, "value": value, **arguments})


def outcomes(alpha: float, mask: Mask, queries: int, keys: int, dtype: Any) -> list[Tensor]:
    """Return an output and its gradients, with larger and smaller scores in the same call."""
    torch.manual_seed(3)
    query, key, value = inputs(3, 2, queries=queries, keys=keys, dtype=dtype)
    query = query * torch.tensor([0.01, 1.0, 6.0], dtype=dtype).view(3, 1, 1, 1)
    tensors = [tensor.requires_grad_() for tensor in (query, key, value)]
    alphas = torch.tensor([alpha, alpha], dtype=dtype, requires_grad=True)
    if isinstance(mask, Tensor) and mask.is_floating_point():
        mask = mask.to(dtype)
    output = entmax_attention(*tensors, alpha=alphas, **options(mask))
    plain = entmax_attention(*tensors, alpha=alpha, **options(mask))
    upstream = torch.randn_like(output)
    gradients = torch.autograd.grad(output, [*tensors, alphas], upstream)
    return [output, *gradients, plain, *torch.autograd.grad(plain, tensors, upstream)]


@pytest.mark.parametrize(
    ("alpha", "kind", "dtype"),
    zip(
        [1.0, 1.0001, 1.1, 1.37, 1.5, 1.5, 1.95, 2.0, 2.0, 2.5, 3.0],
        cycle(["none", "causal", "random", "holes"]),
        cycle([torch.float32, torch.float64, torch.float64]),
    ),
)
def test_implementations_agree(
    alpha: float, kind: str, dtype: Any, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for queries, keys in ((5, 7), (6, 70)):
        mask = masks(queries, keys)[kind]
        fused = outcomes(alpha, mask, queries, keys, dtype)
        with monkeypatch.context() as patch:
            patch.setattr(backends, "of", lambda *_: reference)
            expected = outcomes(alpha, mask, queries, keys, dtype)
        close = 1e-10 if dtype == torch.float64 else 1e-4
        torch.testing.assert_close(fused, expected, rtol=close, atol=close)


@pytest.mark.parametrize(("alpha", "bad"), zip([1.0, 1.3, 1.5, 2.0, 2.5], cycle([math.nan, INF])))
def test_what_is_not_finite_stays_in_its_row(alpha: float, bad: float) -> None:
    query, key, value = inputs(2)
    query[1, 3, 0] = bad
    output = entmax_attention(query, key.abs(), value, alpha=alpha)
    expected = entmax_attention(query.clamp(-9, 9).nan_to_num(0), key.abs(), value, alpha=alpha)
    assert output[1, 3].isnan().all()
    kept = torch.ones(2, 5, dtype=torch.bool)
    kept[1, 3] = False
    assert torch.equal(output[kept], expected[kept])


def test_dropout_repeats_with_the_seed_and_differs_between_rows() -> None:
    query, key = torch.zeros(1, 2, 50, 4), torch.zeros(1, 2, 200, 4)
    eye = torch.eye(200).expand(1, 2, 200, 200)
    draws = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        draws.append(entmax_attention(query, key, eye, alpha=1.5, dropout_p=0.5) > 0)
    assert torch.equal(draws[0], draws[1])
    # Of independent rows, half of the numbers agree.
    rows = torch.cat([draws[0].flatten(0, 2), draws[2].flatten(0, 2)]).double() * 2 - 1
    agreement = (rows @ rows.T / 200).fill_diagonal_(0)
    assert agreement.abs().max() < 0.45
    assert (rows.mean(0)).abs().max() < 0.4


def test_parameters_after_value_are_given_by_name() -> None:
    """PyTorch's fourth parameter is the mask: neither is taken for the other."""
    query, key, value = inputs(3, 2)
    mask = torch.ones(5, 7, dtype=torch.bool)
    for positional in ([mask], [1.5], [1.5, mask]):
        with pytest.raises(TypeError, match=r"write entmax_attention\(query, key, value, alpha="):
            entmax_attention(query, key, value, *positional)
        with pytest.raises(TypeError, match=r"write entmax_attention_weights\(query, key, alpha="):
            entmax_attention_weights(query, key, *positional)


def groups() -> list[Tensor]:
    """Return six heads of queries, two of keys and values."""
    query, key = torch.randn(3, 6, 5, 4), torch.randn(3, 2, 7, 4)
    return [tensor.double() for tensor in (query, key, torch.randn(3, 2, 7, 3))]


def test_grouped_queries_equal_pytorchs_at_softmax() -> None:
    tensors = groups()
    expected = torch.nn.functional.scaled_dot_product_attention(*tensors, enable_gqa=True)
    ours = entmax_attention(*tensors, alpha=1.0, enable_gqa=True)
    torch.testing.assert_close(ours, expected)


@pytest.mark.parametrize("alpha", [1.5, 3.0, (1.2, 1.4, 1.6, 1.8, 2.0, 2.4)])
def test_grouped_queries_equal_repeated_keys(alpha: Any) -> None:
    alpha = torch.tensor(alpha).double() if isinstance(alpha, tuple) else alpha
    query, key, value = groups()
    repeated = [tensor.repeat_interleave(3, 1) for tensor in (key, value)]
    output = entmax_attention(query, key, value, alpha=alpha, enable_gqa=True)
    torch.testing.assert_close(output, entmax_attention(query, *repeated, alpha=alpha))
    weights = entmax_attention_weights(query, key, alpha=alpha, enable_gqa=True)
    torch.testing.assert_close(weights @ repeated[1], output)


def test_gradients_of_grouped_queries() -> None:
    tensors = [tensor[:1, :, :3].requires_grad_() for tensor in groups()]
    assert torch.autograd.gradcheck(
        lambda *leaves: entmax_attention(*leaves, enable_gqa=True), tensors
    )
