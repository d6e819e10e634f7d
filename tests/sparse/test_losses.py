"""entmax_loss: cross-entropy's interface, any target, gradients, corners, properties."""

from itertools import cycle

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck
from torch.nn import functional

from onmt_entmax.sparse import entmax, entmax_loss
from onmt_entmax.sparse.entropy import tsallis_entropy
from tests.oracles import entmax_oracle, loss_oracle

ALPHAS = (1.0, 1.001, 1.2, 1.33, 1.5, 2.0, 2.5)
KINDS = ("classes", "distributions")
INDEX = torch.tensor([0, 1, -100, 3, 6, 2])
WEIGHT = torch.tensor([0.5, 1.0, 0.0, 2.0, 0.3, 1.5, 0.7], dtype=torch.float64)
OPTIONS: tuple[dict[str, object], ...] = (
    {},
    {"weight": WEIGHT},
    {"label_smoothing": 0.1},
    {"weight": WEIGHT, "label_smoothing": 0.3},
    {"ignore_index": 3},
)


def some_scores(*shape: int) -> Tensor:
    return (torch.randn(*shape, dtype=torch.float64) * 2).requires_grad_()


def one_hot(index: Tensor, classes: int) -> Tensor:
    return functional.one_hot(index, classes).double()


def target_of(kind: str) -> Tensor:
    distributions = torch.rand(6, 7, dtype=torch.float64).softmax(1)
    return INDEX if kind == "classes" else distributions


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("options", OPTIONS)
def test_alpha_one_is_cross_entropy(options: dict, reduction: str) -> None:
    target = target_of(KINDS[reduction == "mean" and "ignore_index" not in options])
    if "ignore_index" in options:
        target = INDEX.clamp_min(0)
    z = some_scores(6, 7)
    ours = entmax_loss(z, target, 1.0, reduction=reduction, **options)
    theirs = functional.cross_entropy(z, target, reduction=reduction, **options)
    assert torch.allclose(ours, theirs, atol=1e-12)
    grads = [torch.autograd.grad(loss.sum(), z)[0] for loss in (ours, theirs)]
    assert torch.allclose(*grads, atol=1e-12)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_targets_whose_weights_sum_to_zero(smoothing: float) -> None:
    """The mean of cross-entropy is nan there; ours is the sum."""
    z, index = some_scores(4, 7), torch.tensor([2, -100, 2, 2])
    options = {"weight": WEIGHT, "label_smoothing": smoothing}
    theirs = functional.cross_entropy(z, index, reduction="sum", **options)
    assert functional.cross_entropy(z, index, **options).isnan()
    for reduction in ("sum", "mean"):
        ours = entmax_loss(z, index, 1.0, reduction=reduction, **options)
        assert torch.allclose(ours, theirs, atol=1e-12)
        assert (float(ours) == 0) == (smoothing == 0)
        assert torch.autograd.grad(ours, z)[0].isfinite().all()


@pytest.mark.parametrize("alpha", [1.0, 1.5])
@pytest.mark.parametrize("shape", [(7,), (4, 7), (2, 7, 3, 5)])
def test_shapes_of_cross_entropy(shape: tuple[int, ...], alpha: float) -> None:
    z = torch.randn(shape)
    rest = shape[:1] + shape[2:] if len(shape) > 1 else ()
    target = torch.randint(7, rest)
    for reduction in ("none", "sum", "mean"):
        theirs = functional.cross_entropy(z, target, reduction=reduction)
        ours = entmax_loss(z, target, alpha, reduction=reduction)
        assert ours.shape == theirs.shape
        if alpha == 1:
            assert torch.allclose(ours, theirs, atol=1e-6)


@pytest.mark.parametrize(("alpha", "classes"), zip(ALPHAS * 2, cycle([7, 600, 5003])))
def test_value_equals_the_oracle(alpha: float, classes: int) -> None:
    z = torch.randn(9, classes) * 3
    index = torch.randint(classes, (9,))
    expected = loss_oracle(z, one_hot(index, classes), alpha)
    assert torch.allclose(
        entmax_loss(z, index, alpha, reduction="none").double(), expected, 1e-5, 4e-6
    )
    target = torch.rand(9, classes).softmax(1)
    expected = loss_oracle(z, target, alpha)
    assert torch.allclose(
        entmax_loss(z, target, alpha, reduction="none").double(), expected, 1e-5, 4e-6
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("alpha", "options"), zip(ALPHAS * 2, cycle(OPTIONS[:4])))
def test_gradients(alpha: float, kind: str, options: dict) -> None:
    target = target_of(kind)
    assert gradcheck(lambda z: entmax_loss(z, target, alpha, **options), some_scores(6, 7))


@pytest.mark.parametrize("alpha", [1.0, 1.001, 1.5, 2.0, 2.5])
@pytest.mark.parametrize("kind", KINDS)
def test_gradients_of_gradients(alpha: float, kind: str) -> None:
    target = target_of(kind)
    assert gradgradcheck(
        lambda z: entmax_loss(z, target, alpha, reduction="none"), some_scores(6, 7)
    )


@pytest.mark.parametrize("low", [1.001, 1.3, 2.3])
def test_gradient_in_alpha_and_in_the_target(low: float) -> None:
    z, target = some_scores(6, 7), target_of("distributions").requires_grad_()
    alpha = torch.tensor([[low]], dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda x, a: entmax_loss(x, INDEX, a), (z, alpha))
    assert gradgradcheck(lambda x, a: entmax_loss(x, INDEX, a), (z, alpha))
    per_row = (low + 0.1 * torch.rand(6, 1, dtype=torch.float64)).requires_grad_()
    assert gradcheck(lambda x, a, t: entmax_loss(x, t, a), (z, per_row, target))


@pytest.mark.parametrize("alpha", [1.0, 1.2, 2.0, 2.5])
def test_impossible_classes(alpha: float) -> None:
    """A score of -inf: an infinite loss if it is the target, no nan anywhere else."""
    z = torch.tensor([[0.2, -float("inf"), 0.5], [0.1, 0.2, -float("inf")]], requires_grad=True)
    losses = entmax_loss(z, torch.tensor([1, 0]), alpha, reduction="none")
    assert losses[0] == float("inf")
    assert losses[1].isfinite()
    losses[1].backward()
    assert z.grad.isfinite().all()
    assert z.grad[1, 2] == 0
    target = torch.tensor([[0.5, 0.0, 0.5], [0.3, 0.7, 0.0]])
    loss = entmax_loss(z, target, alpha)
    loss.backward()
    assert loss.isfinite()
    assert z.grad.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_types(dtype: torch.dtype) -> None:
    z, index = (torch.randn(5, 40) * 3).to(dtype).requires_grad_(), torch.randint(40, (5,))
    loss = entmax_loss(z, index)
    assert loss.dtype == dtype
    assert loss == entmax_loss(z.float(), index).to(dtype)
    loss.backward()
    assert z.grad.dtype == dtype
    more = {"weight": torch.ones(40), "label_smoothing": 0.1}
    plain = entmax_loss(z.float(), index, **more)
    with torch.autocast("cpu", dtype=dtype):
        assert entmax_loss(z, index).dtype == torch.float32
        assert entmax_loss(z.float(), index, **more) == plain


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"alpha": 0.5}, "alpha"),
        ({"reduction": "max"}, "reduction"),
        ({"label_smoothing": 1.5}, "label_smoothing"),
        ({"weight": torch.ones(3)}, "weight"),
        ({"weight": torch.ones(4, requires_grad=True)}, "weight has no gradient"),
        ({"target": torch.tensor([0, 9])}, "not a class from 0 to 3"),
        ({"target": torch.tensor([0, 1, 2])}, "does not fit"),
        ({"target": torch.rand(2, 3)}, "does not fit"),
        ({"scores": torch.tensor(1.0)}, "dimension"),
        ({"scores": torch.full((2, 4), -float("inf"))}, "-inf everywhere"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        entmax_loss(**{"scores": torch.randn(2, 4), "target": torch.tensor([0, 1])} | arguments)


rows_of_scores = st.integers(2, 20).flatmap(
    lambda n: st.tuples(*[st.lists(st.floats(-20, 20), min_size=n, max_size=n)] * 2)
)


@pytest.mark.parametrize("alpha", [1.0, 1.5])
@pytest.mark.parametrize("label", [0, 1])
def test_a_class_of_weight_zero_may_be_impossible_under_smoothing(alpha: float, label: int) -> None:
    scores = torch.tensor([[1.0, -float("inf"), 0.5]], requires_grad=True)
    weight = torch.tensor([1.0, 0.0, 1.0])
    loss = entmax_loss(
        scores, torch.tensor([label]), alpha, weight, label_smoothing=0.3, reduction="sum"
    )
    spread = torch.full((1, 3), 0.1)
    spread[0, label] += 0.7
    same = entmax_loss(scores, spread, alpha, weight, reduction="sum")
    assert torch.allclose(loss, same)
    loss.backward()
    assert torch.isfinite(scores.grad[:, ::2]).all()


@pytest.mark.parametrize(
    ("alpha", "kind", "compiled"),
    [*zip(ALPHAS, cycle(KINDS), cycle([False])), (1.0, KINDS[1], True), (1.5, KINDS[0], True)],
)
def test_scores_far_from_zero_keep_their_digits(alpha: float, kind: str, compiled: bool) -> None:
    """A constant added to float32 scores that have room for it changes neither loss nor gradient,
    as in cross-entropy."""
    scores = (torch.randn(6, 7) * 2 * 256).round() / 256  # exact, also after the addition
    target = target_of(kind).float() if kind == "distributions" else INDEX
    loss = torch.compile(entmax_loss, backend="aot_eager") if compiled else entmax_loss
    outcomes = []
    for offset in (0.0, 8192.0):
        z = (scores + offset).requires_grad_()
        losses = loss(z, target, alpha, reduction="none", label_smoothing=0.1 * compiled)
        losses.sum().backward()
        outcomes.append((losses.detach(), z.grad))
    for near, far in zip(*outcomes, strict=True):
        torch.testing.assert_close(near, far, rtol=0, atol=1e-6)


@pytest.mark.parametrize("alpha", [1.0, 1.5, 2.5])
@pytest.mark.parametrize(
    ("weight", "compiled"), [(None, False), (torch.tensor([1.0, 2.0, 0.5]), True)]
)
def test_ignored_rows_count_nothing_under_smoothing(
    alpha: float, weight: Tensor | None, compiled: bool
) -> None:
    """Even if smoothing spreads a part of the target to a class whose score is -inf."""
    loss = torch.compile(entmax_loss, backend="aot_eager") if compiled else entmax_loss
    scores = torch.tensor(
        [[0.3, -0.2, 0.1], [0.5, -float("inf"), 0.2], [1e38, -3e38, 2e38]], requires_grad=True
    )
    target = torch.tensor([2, -100, -100])
    options = {"weight": weight, "label_smoothing": 0.1}
    losses = loss(scores, target, alpha, reduction="none", **options)
    assert losses[1:].tolist() == [0, 0]
    (grad,) = torch.autograd.grad(loss(scores, target, alpha, **options), scores)
    assert (grad[1:] == 0).all()
    alone = scores.detach()[:1].requires_grad_()
    expected = entmax_loss(alone, target[:1], alpha, **options)
    assert torch.allclose(losses[:1] / (1.0 if weight is None else 0.5), expected)
    assert torch.allclose(grad[:1], torch.autograd.grad(expected, alone)[0])


def test_every_row_has_its_alpha_and_any_integers_are_classes(device: str) -> None:
    """Each row as alone with its number, values and gradients, on both sides of 2."""
    numbers = (1.0, 1.2, 1.5, 2.0, 2.5, 20.0)
    alpha = torch.tensor(numbers, dtype=torch.float64, device=device).repeat(3).unsqueeze(1)
    alpha.requires_grad_()
    z = (torch.randn(18, 30, dtype=torch.float64, device=device) / alpha.detach()).requires_grad_()
    index = torch.arange(18, device=device)
    losses = entmax_loss(z, index.to(torch.uint8), alpha, reduction="none")
    grad, in_alpha = torch.autograd.grad(losses.sum(), (z, alpha))
    assert in_alpha.isfinite().all()
    for row, number in enumerate(numbers * 3):
        alone = z.detach()[row : row + 1].requires_grad_()
        expected = entmax_loss(alone, index[row : row + 1], number)
        torch.testing.assert_close(losses[row], expected, rtol=1e-9, atol=1e-12)
        (expected_grad,) = torch.autograd.grad(expected, alone)
        torch.testing.assert_close(grad[row : row + 1], expected_grad, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("alpha", [1.1, 1.2, 1.5, 2.0, 2.5])
def test_near_the_margin(alpha: float, dtype: torch.dtype, device: str) -> None:
    """No loss is below 0, and all beyond the margin are exactly 0, with their gradient."""
    distance = torch.logspace(-1, -6, 40, dtype=torch.float64)
    lead = torch.cat([1 - distance, 1 + distance]) / (alpha - 1)
    scores = torch.rand(80, 12, dtype=torch.float64) * -3
    scores[:, 0] = scores[:, 1:].amax(1) + lead
    scores, target = scores.to(device, dtype).requires_grad_(), torch.zeros(80, device=device)
    one_hot = functional.one_hot(target.long(), 12).to(dtype)
    for targets in (target.long(), one_hot):
        for each in (alpha, torch.full((80, 1), alpha, device=device, dtype=torch.float64)):
            losses = entmax_loss(scores, targets, each, reduction="none")
            assert (losses >= 0).all()
            if targets is not one_hot:
                assert not losses[76:].any() or dtype == torch.float32
                assert not losses[40:50].any()
            assert (losses[40:] <= 16 * torch.finfo(dtype).eps / (alpha - 1)).all()
            (gradient,) = torch.autograd.grad(losses.sum(), scores)
            exact = entmax_oracle(scores, alpha) - one_hot
            eps = 16 * torch.finfo(dtype).eps
            most = eps / (alpha - 1) if alpha <= 2 else eps ** (1 / (alpha - 1))
            assert ((gradient - exact).abs() <= most).all()


@given(rows_of_scores, st.floats(1, 3), st.floats(0, 1))
def test_properties(pair, alpha, where) -> None:
    """Convex, not negative, 0 where entmax(z) = q with the entropy of q taken off, margin."""
    one, other = (torch.tensor(row, dtype=torch.float64) for row in pair)
    index = torch.tensor(1)
    ends = [entmax_loss(z, index, alpha) for z in (one, other)]
    between = entmax_loss(one + where * (other - one), index, alpha)
    assert 0 <= between <= (1 - where) * ends[0] + where * ends[1] + 1e-9
    for q, zero in ((entmax(one, alpha), True), (entmax(other, alpha), False)):
        divergence = float(entmax_loss(one, q, alpha) - tsallis_entropy(q, alpha))
        assert divergence >= -1e-6
        assert abs(divergence) <= 1e-6 or not zero
    if alpha > 1.5:
        one[1] = -100
        one[1] = one.max() + 1 / (alpha - 1) + 1e-9
        assert entmax_loss(one, index, alpha) == 0
        one[1] -= 0.1
        assert entmax_loss(one, index, alpha) > 0
