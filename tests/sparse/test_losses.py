"""`entmax_loss` beside cross-entropy and the definition, and its gradients."""

from collections.abc import Callable
from itertools import cycle

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck
from torch.nn import functional

from onmt_entmax.sparse import entmax_loss
from tests.oracles import loss_oracle

ALPHAS = (1.0, 1.001, 1.2, 1.33, 1.5, 2.0, 2.5)
KINDS = ("classes", "distributions")
INDEX = torch.tensor([0, 1, -100, 3, 6, 2])
WEIGHT = torch.tensor([0.5, 1.0, 0.0, 2.0, 0.3, 1.5, 0.7], dtype=torch.float64)
OPTIONS: dict[str, dict[str, object]] = {
    "plain": {},
    "weights": {"weight": WEIGHT},
    "smoothing": {"label_smoothing": 0.1},
    "weights and smoothing": {"weight": WEIGHT, "label_smoothing": 0.3},
}


def random_scores(*shape: int) -> Tensor:
    """Return scores in float64, in a leaf."""
    return (torch.randn(*shape, dtype=torch.float64) * 2).requires_grad_()


def one_hot(index: Tensor, classes: int) -> Tensor:
    return functional.one_hot(index, classes).double()


def target_of(kind: str) -> Tensor:
    """Return classes ``(6,)`` or distributions ``(6, 7)``."""
    distributions = torch.rand(6, 7, dtype=torch.float64).softmax(1)
    return INDEX if kind == "classes" else distributions


def assert_equal_losses_and_gradients(ours: Tensor, theirs: Tensor, z: Tensor) -> None:
    assert torch.allclose(ours, theirs, atol=1e-12)
    gradients = [torch.autograd.grad(loss.sum(), z)[0] for loss in (ours, theirs)]
    assert torch.allclose(*gradients, atol=1e-12)


reductions = pytest.mark.parametrize("reduction", ["none", "sum", "mean"])


@reductions
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_alpha_one_is_cross_entropy(kind: str, options: dict, reduction: str) -> None:
    z, target = random_scores(6, 7), target_of(kind)
    ours = entmax_loss(z, target, 1.0, reduction=reduction, **options)
    theirs = functional.cross_entropy(z, target, reduction=reduction, **options)
    assert_equal_losses_and_gradients(ours, theirs, z)


@reductions
def test_alpha_one_ignores_what_cross_entropy_ignores(reduction: str) -> None:
    z, target = random_scores(6, 7), INDEX.clamp_min(0)
    ours = entmax_loss(z, target, 1.0, reduction=reduction, ignore_index=3)
    theirs = functional.cross_entropy(z, target, reduction=reduction, ignore_index=3)
    assert_equal_losses_and_gradients(ours, theirs, z)


class TestTargetsWhoseWeightsSumToZero:
    """The mean of cross-entropy is nan there; ours is the sum."""

    INDEX = torch.tensor([2, -100, 2, 2])  # class 2 has weight 0

    def test_have_no_mean_of_cross_entropy(self) -> None:
        assert functional.cross_entropy(random_scores(4, 7), self.INDEX, weight=WEIGHT).isnan()

    @pytest.mark.parametrize("reduction", ["sum", "mean"])
    def test_have_loss_0(self, reduction: str) -> None:
        z = random_scores(4, 7)
        loss = entmax_loss(z, self.INDEX, 1.0, weight=WEIGHT, reduction=reduction)
        assert loss.item() == 0
        assert not torch.autograd.grad(loss, z)[0].any()

    @pytest.mark.parametrize("reduction", ["sum", "mean"])
    def test_have_the_sum_of_cross_entropy_under_smoothing(self, reduction: str) -> None:
        z, options = random_scores(4, 7), {"weight": WEIGHT, "label_smoothing": 0.1}
        ours = entmax_loss(z, self.INDEX, 1.0, reduction=reduction, **options)
        theirs = functional.cross_entropy(z, self.INDEX, reduction="sum", **options)
        assert float(theirs) > 0
        assert torch.allclose(ours, theirs, atol=1e-12)
        assert torch.autograd.grad(ours, z)[0].isfinite().all()


def target_for(shape: tuple[int, ...]) -> Tensor:
    """Return classes for scores of a shape, whose second dimension, or only one, is the classes."""
    return torch.randint(7, shape[:1] + shape[2:] if len(shape) > 1 else ())


shapes = pytest.mark.parametrize("shape", [(7,), (4, 7), (2, 7, 3, 5)])


@shapes
@reductions
@pytest.mark.parametrize("alpha", [1.0, 1.5])
def test_losses_have_the_shape_of_cross_entropy(
    shape: tuple[int, ...], alpha: float, reduction: str
) -> None:
    z, target = torch.randn(shape), target_for(shape)
    theirs = functional.cross_entropy(z, target, reduction=reduction)
    assert entmax_loss(z, target, alpha, reduction=reduction).shape == theirs.shape


@shapes
@reductions
def test_alpha_one_is_cross_entropy_in_any_shape(shape: tuple[int, ...], reduction: str) -> None:
    z, target = torch.randn(shape), target_for(shape)
    ours = entmax_loss(z, target, 1.0, reduction=reduction)
    theirs = functional.cross_entropy(z, target, reduction=reduction)
    assert torch.allclose(ours, theirs, atol=1e-6)


# Each alpha twice, with sizes in turn.
sizes = pytest.mark.parametrize(("alpha", "classes"), [*zip(ALPHAS * 2, cycle([7, 600, 5003]))])


@sizes
def test_losses_of_classes_equal_the_definition(alpha: float, classes: int) -> None:
    z, index = torch.randn(9, classes) * 3, torch.randint(classes, (9,))
    losses = entmax_loss(z, index, alpha, reduction="none").double()
    expected = loss_oracle(z, one_hot(index, classes), alpha)
    assert torch.allclose(losses, expected, rtol=1e-5, atol=4e-6)


@sizes
def test_losses_of_distributions_equal_the_definition(alpha: float, classes: int) -> None:
    z, target = torch.randn(9, classes) * 3, torch.rand(9, classes).softmax(1)
    losses = entmax_loss(z, target, alpha, reduction="none").double()
    assert torch.allclose(losses, loss_oracle(z, target, alpha), rtol=1e-5, atol=4e-6)


# Each alpha twice, with options in turn.
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("alpha", "options"),
    [
        pytest.param(alpha, options, id=f"{alpha}, {name}")
        for alpha, (name, options) in zip(ALPHAS * 2, cycle(OPTIONS.items()), strict=False)
    ],
)
def test_gradients_are_difference_quotients(alpha: float, kind: str, options: dict) -> None:
    target = target_of(kind)
    assert gradcheck(lambda z: entmax_loss(z, target, alpha, **options), random_scores(6, 7))


@pytest.mark.parametrize("alpha", [1.0, 1.001, 1.5, 2.0, 2.5])
@pytest.mark.parametrize("kind", KINDS)
def test_second_gradients_are_difference_quotients_of_the_first(alpha: float, kind: str) -> None:
    target = target_of(kind)
    assert gradgradcheck(
        lambda z: entmax_loss(z, target, alpha, reduction="none"), random_scores(6, 7)
    )


some_alphas = pytest.mark.parametrize("low", [1.001, 1.3, 2.3])


@some_alphas
@pytest.mark.parametrize("check", [gradcheck, gradgradcheck], ids=["first", "second"])
def test_gradients_in_alpha_are_difference_quotients(
    low: float, check: Callable[..., bool]
) -> None:
    z, alpha = random_scores(6, 7), torch.tensor([[low]], dtype=torch.float64, requires_grad=True)
    assert check(lambda x, a: entmax_loss(x, INDEX, a), (z, alpha))


@some_alphas
def test_gradients_in_alphas_of_rows_and_in_the_target_are_difference_quotients(low: float) -> None:
    z, target = random_scores(6, 7), target_of("distributions").requires_grad_()
    alphas = (low + 0.1 * torch.rand(6, 1, dtype=torch.float64)).requires_grad_()
    assert gradcheck(lambda x, a, t: entmax_loss(x, t, a), (z, alphas, target))


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int32])
def test_any_integers_are_classes(dtype: torch.dtype) -> None:
    z, index = random_scores(3, 7), torch.tensor([2, 0, 6])
    assert torch.equal(entmax_loss(z, index.to(dtype)), entmax_loss(z, index))


def test_a_row_with_its_own_alpha_has_the_loss_and_gradient_that_it_has_alone(device: str) -> None:
    """Alphas are on both sides of 2."""
    numbers = (1.0, 1.2, 1.5, 2.0, 2.5, 20.0) * 3
    rows = len(numbers)
    alpha = torch.tensor(numbers, dtype=torch.float64, device=device).unsqueeze(1).requires_grad_()
    scores = torch.randn(rows, 30, dtype=torch.float64, device=device) / alpha.detach()
    z, index = scores.requires_grad_(), torch.arange(rows, device=device)
    losses = entmax_loss(z, index, alpha, reduction="none")
    grad, in_alpha = torch.autograd.grad(losses.sum(), (z, alpha))
    assert in_alpha.isfinite().all()
    for row, number in enumerate(numbers):
        alone = z.detach()[row : row + 1].requires_grad_()
        expected = entmax_loss(alone, index[row : row + 1], number)
        torch.testing.assert_close(losses[row], expected, rtol=1e-9, atol=1e-12)
        (expected_grad,) = torch.autograd.grad(expected, alone)
        torch.testing.assert_close(grad[row : row + 1], expected_grad, rtol=1e-6, atol=1e-9)
