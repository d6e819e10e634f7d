"""entmax_loss: cross-entropy's interface, any target, gradients, corners, properties."""

import entmax as peer
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck
from torch.nn import functional

from onmt_entmax.sparse import entmax, entmax_loss
from onmt_entmax.sparse.entropy import tsallis_entropy
from onmt_entmax.sparse.modules import EntmaxLoss
from tests.oracles import loss_oracle

ALPHAS = (1.0, 1.001, 1.05, 1.2, 1.33, 1.5, 1.8, 2.0, 2.5)
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


@pytest.mark.parametrize("kind", ["classes", "distributions"])
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
def test_alpha_one_is_cross_entropy(kind: str, options: dict, reduction: str) -> None:
    target = target_of(kind)
    if "ignore_index" in options:
        if kind == "distributions":
            pytest.skip("cross_entropy takes ignore_index with class indices only")
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


@pytest.mark.parametrize("shape", [(7,), (4, 7), (4, 7, 3), (2, 7, 3, 5)])
@pytest.mark.parametrize("alpha", [1.0, 1.5])
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


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("classes", [7, 600, 5003])
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


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("kind", ["classes", "distributions"])
@pytest.mark.parametrize("options", OPTIONS[:4])
def test_gradients(alpha: float, kind: str, options: dict) -> None:
    target = target_of(kind)
    assert gradcheck(lambda z: entmax_loss(z, target, alpha, **options), some_scores(6, 7))


@pytest.mark.parametrize("alpha", [1.0, 1.001, 1.5, 2.0, 2.5])
@pytest.mark.parametrize("kind", ["classes", "distributions"])
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


@pytest.mark.parametrize("low", [1.3, 2.3])
def test_gradient_in_alpha_of_small_supports(low: float) -> None:
    torch.manual_seed(0)
    scores, target = 5 * torch.randn(6, 40, dtype=torch.float64), torch.arange(6)
    alpha = torch.linspace(low, low + 0.6, 6, dtype=torch.float64).view(6, 1).requires_grad_()
    support = entmax(scores, alpha) > 0
    assert 4 * int(support.sum()) < support.numel(), "else whole rows are computed"
    assert int(support.sum()) > 6
    inputs = scores.requires_grad_(), alpha
    assert gradcheck(lambda z, a: entmax_loss(z, target, a, reduction="none"), inputs)
    assert gradgradcheck(lambda z, a: entmax_loss(z, target, a, reduction="none"), inputs)


@pytest.mark.parametrize("alpha", [1.33, 1.5, 2.0, 2.5])
@pytest.mark.parametrize("spread", [0.02, 1.0, 5.0])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_long_rows(alpha: float, spread: float, smoothing: float) -> None:
    """The sparse path: gradient = entmax minus target, and its own gradient by entmax's."""
    classes = 5003
    z = (torch.randn(60, classes, dtype=torch.float64) * spread).requires_grad_()
    index = torch.randint(classes, (60,))
    index[::9] = -100
    loss = entmax_loss(z, index, alpha, reduction="sum", label_smoothing=smoothing)
    (grad,) = torch.autograd.grad(loss, z, create_graph=True)
    kept = index >= 0
    target = one_hot(index.clamp_min(0), classes) * (1 - smoothing) + smoothing / classes
    expected = torch.where(kept.unsqueeze(1), entmax(z, alpha) - target, 0.0)
    assert torch.allclose(grad, expected, atol=1e-12)
    (plain,) = torch.autograd.grad(loss, z, retain_graph=True)
    assert torch.allclose(plain, expected, atol=1e-12)
    weights = torch.randn_like(z)
    seconds = [torch.autograd.grad((g * weights).sum(), z)[0] for g in (grad, expected)]
    assert torch.allclose(*seconds, rtol=1e-6, atol=1e-8)


def test_dense_and_sparse_rows_in_one_batch() -> None:
    """Groups of rows that are near uniform beside groups with a small support."""
    z = torch.randn(1400, 5000) * 4
    z[:900] *= 0.001
    z.requires_grad_()
    index = torch.randint(5000, (1400,))
    entmax_loss(z, index, 1.5, reduction="sum").backward()
    expected = entmax(z.detach().double(), 1.5) - one_hot(index, 5000)
    assert torch.allclose(z.grad.double(), expected, atol=1e-6)


def test_groups_of_rows_make_one_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each row with a gradient of its own, the last groups as the first."""
    monkeypatch.setattr("onmt_entmax.sparse.backends.cpu.module", None)
    monkeypatch.setattr("onmt_entmax.sparse.conjugate._SEARCHED", 3 * 5003)
    z = (torch.randn(8, 5003, dtype=torch.float64) * 5).requires_grad_()
    index, factors = torch.randint(5003, (8,)), torch.arange(8.0, dtype=torch.float64)
    losses = entmax_loss(z, index, 1.5, reduction="none")
    (grad,) = torch.autograd.grad(losses @ factors, z)
    expected = (entmax(z.detach(), 1.5) - one_hot(index, 5003)) * factors.unsqueeze(1)
    assert torch.allclose(grad, expected, atol=1e-9)


@pytest.mark.parametrize("classes", [30, 776, 5000])
def test_equals_entmax_1_3(classes: int) -> None:
    for alpha, other in ((1.5, peer.entmax15_loss), (2.0, peer.sparsemax_loss)):
        z = (torch.randn(20, classes) * 3).requires_grad_()
        index = torch.randint(classes, (20,))
        ours, theirs = entmax_loss(z, index, alpha, reduction="none"), other(z, index)
        assert torch.allclose(ours, theirs, atol=2e-5)
        grads = [torch.autograd.grad(loss.sum(), z)[0] for loss in (ours, theirs)]
        assert torch.allclose(*grads, atol=1e-5)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_nothing_to_learn_from_is_zero(alpha: float) -> None:
    for rows in (3, 0):
        z = torch.randn(rows, 5, requires_grad=True)
        loss = entmax_loss(z, torch.full((rows,), -100), alpha)
        loss.backward()
        assert loss == 0
        assert (z.grad == 0).all()


@pytest.mark.parametrize("alpha", ALPHAS)
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
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert entmax_loss(z, index).dtype == torch.float32


def test_module_is_the_function() -> None:
    z, weight = torch.randn(6, 7), WEIGHT.float()
    module = EntmaxLoss(1.3, weight, 0, "sum", 0.2)
    index = torch.tensor([0, 1, 2, 3, 4, 5])
    assert module(z, index) == entmax_loss(z, index, 1.3, weight, 0, "sum", 0.2)
    assert "alpha=1.3" in repr(module)
    assert "weight" in module.state_dict()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"alpha": 0.5}, "alpha"),
        ({"reduction": "max"}, "reduction"),
        ({"label_smoothing": 1.5}, "label_smoothing"),
        ({"weight": torch.ones(3)}, "weight"),
        ({"target": torch.tensor([0, 9])}, "not a class from 0 to 3"),
        ({"target": torch.tensor([0, -1])}, "not a class from 0 to 3"),
        ({"target": torch.tensor([0, 1, 2])}, "does not fit"),
        ({"target": torch.rand(2, 3)}, "does not fit"),
        ({"target": torch.tensor([True, False])}, "does not fit"),
        ({"scores": torch.tensor(1.0)}, "dimension"),
        ({"scores": torch.randn(2, 0)}, "no classes"),
        ({"scores": torch.full((2, 4), -float("inf"))}, "-inf everywhere"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        entmax_loss(**{"scores": torch.randn(2, 4), "target": torch.tensor([0, 1])} | arguments)


rows_of_scores = st.integers(2, 20).flatmap(
    lambda n: st.tuples(*[st.lists(st.floats(-20, 20), min_size=n, max_size=n)] * 2)
)


@given(rows_of_scores, st.floats(1, 3), st.floats(0, 1))
def test_convex_along_lines(pair, alpha, where) -> None:
    one, other = (torch.tensor(row, dtype=torch.float64) for row in pair)
    index = torch.tensor(0)
    between = entmax_loss(one + where * (other - one), index, alpha)
    chord = (1 - where) * entmax_loss(one, index, alpha) + where * entmax_loss(other, index, alpha)
    assert between <= chord + 1e-9


@given(rows_of_scores, st.floats(1, 3))
def test_not_negative_and_zero_at_its_own_mapping(pair, alpha) -> None:
    """With the entropy of the target taken off, the loss is >= 0, and 0 where entmax(z) = q."""
    z = torch.tensor(pair[0], dtype=torch.float64)
    other = torch.tensor(pair[1], dtype=torch.float64)
    assert entmax_loss(z, torch.tensor(1), alpha) >= -1e-12
    own, else_ = entmax(z, alpha), entmax(other, alpha)
    assert abs(entmax_loss(z, own, alpha) - tsallis_entropy(own, alpha)) <= 1e-6
    assert entmax_loss(z, else_, alpha) - tsallis_entropy(else_, alpha) >= -1e-6


@given(rows_of_scores, st.floats(1.05, 3))
def test_margin_gives_zero_loss(pair, alpha) -> None:
    z = torch.tensor(pair[0], dtype=torch.float64)
    z[1] = -100
    z[1] = z.max() + 1 / (alpha - 1) + 1e-9
    assert entmax_loss(z, torch.tensor(1), alpha) == pytest.approx(0, abs=1e-12)
    z[1] -= 0.1
    # Nearer to softmax the loss is too small for its type just inside the margin.
    if alpha >= 1.5:
        assert entmax_loss(z, torch.tensor(1), alpha) > 0


@pytest.mark.parametrize("spread", [0.05, 0.2, 1.0])
def test_of_medium_rows_of_mixed_width(spread: float) -> None:
    """Rows like the first 16, which decide whether a support is searched for, and others."""
    torch.manual_seed(4)
    scores = torch.randn(24, 776) * spread
    scores[16:20] *= 30
    scores[20] = 0.0
    scores[21, 3:] = -torch.inf
    scores.requires_grad_()
    target = torch.arange(24) % 3
    losses = entmax_loss(scores, target, 1.5, reduction="none")
    losses.sum().backward()
    exact = scores.detach().double().requires_grad_()
    # In float64 every row by the logarithmic form, which alpha as a tensor takes.
    alphas = torch.full((24, 1), 1.5, dtype=torch.float64)
    expected = entmax_loss(exact, target, alphas, reduction="none")
    expected.sum().backward()
    torch.testing.assert_close(losses.double(), expected, rtol=2e-6, atol=2e-6)
    torch.testing.assert_close(scores.grad.double(), exact.grad, rtol=0, atol=2e-6)


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


def test_weights_have_no_gradient() -> None:
    with pytest.raises(ValueError, match="weight has no gradient"):
        entmax_loss(torch.zeros(1, 2), torch.tensor([0]), weight=torch.ones(2, requires_grad=True))


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("kind", ["classes", "distributions"])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("compiled", [False, True])
def test_scores_far_from_zero_keep_their_digits(
    alpha: float, kind: str, smoothing: float, compiled: bool
) -> None:
    """A constant added to float32 scores that have room for it changes neither loss nor gradient,
    as in cross-entropy."""
    scores = (torch.randn(6, 7) * 2 * 256).round() / 256  # exact, also after the addition
    target = target_of(kind).float() if kind == "distributions" else INDEX
    loss = torch.compile(entmax_loss, backend="aot_eager") if compiled else entmax_loss
    outcomes = []
    for offset in (0.0, 8192.0):
        z = (scores + offset).requires_grad_()
        losses = loss(z, target, alpha, reduction="none", label_smoothing=smoothing)
        losses.sum().backward()
        outcomes.append((losses.detach(), z.grad))
    for near, far in zip(*outcomes, strict=True):
        torch.testing.assert_close(near, far, rtol=0, atol=1e-6)


def test_classes_of_any_integers() -> None:
    scores, target = torch.randn(3, 7), torch.tensor([1, 2, 3])
    for dtype in (torch.uint8, torch.int32):
        assert entmax_loss(scores, target.to(dtype)) == entmax_loss(scores, target)


def test_several_gradients_at_once() -> None:
    scores, target = torch.randn(3, 7), torch.tensor([1, 2, 3])

    def losses(z: Tensor) -> Tensor:
        return entmax_loss(z, target, label_smoothing=0.1, reduction="none")

    one, all_at_once = (
        torch.autograd.functional.jacobian(losses, scores, vectorize=vectorize)
        for vectorize in (False, True)
    )
    torch.testing.assert_close(one, all_at_once)


@pytest.mark.parametrize("length", [10, 700])
@pytest.mark.parametrize("kept", [True, False])
def test_alphas_on_both_sides_of_two_in_one_call(
    length: int, kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each row as alone with its number, whether backward has probabilities or thresholds."""
    if not kept:
        monkeypatch.setattr("onmt_entmax.sparse.conjugate._KEPT", 0)
    numbers = (1.0, 1.5, 2.0, 2.5, 20.0)
    alpha = torch.tensor(numbers).repeat(8).unsqueeze(1)
    z = torch.randn(40, length) / alpha
    z[:, 10:] -= 50
    z.requires_grad_()
    index = torch.randint(10, (40,))
    losses = entmax_loss(z, index, alpha, reduction="none")
    (grad,) = torch.autograd.grad(losses.sum(), z)
    for place, number in enumerate(numbers):
        rows = slice(place, None, len(numbers))
        alone = z.detach()[rows].requires_grad_()
        expected = entmax_loss(alone, index[rows], number, reduction="none")
        assert torch.allclose(losses[rows], expected, rtol=1e-5, atol=1e-6)
        (expected_grad,) = torch.autograd.grad(expected.sum(), alone)
        assert torch.allclose(grad[rows], expected_grad, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("alpha", [1.0, 1.5, 2.5])
@pytest.mark.parametrize("weight", [None, torch.tensor([1.0, 2.0, 0.5])])
@pytest.mark.parametrize("compiled", [False, True])
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
