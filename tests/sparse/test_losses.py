"""`entmax_loss` equals cross-entropy at alpha 1, and its definition at every alpha."""

from itertools import cycle

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from onmt_entmax.sparse import entmax_loss
from tests.oracles import loss_oracle
from tests.sparse.loss_cases import ALPHAS, INDEX, KINDS, OPTIONS, WEIGHT, random_scores, target_of

reductions = pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
shapes = pytest.mark.parametrize("shape", [(7,), (4, 7), (2, 7, 3, 5)])
# Each alpha with two of three numbers of classes.
sizes = pytest.mark.parametrize(("alpha", "classes"), [*zip(ALPHAS * 2, cycle([7, 600, 5003]))])


# --- alpha 1 and cross-entropy ---


def assert_equal_losses_and_gradients(ours: Tensor, theirs: Tensor, scores: Tensor) -> None:
    """Check that two losses of the same scores are equal, and their gradients, too."""
    assert torch.allclose(ours, theirs, atol=1e-12)
    gradients = [torch.autograd.grad(loss.sum(), scores)[0] for loss in (ours, theirs)]
    assert torch.allclose(*gradients, atol=1e-12)


@reductions
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_alpha_one_is_cross_entropy(kind: str, options: dict, reduction: str) -> None:
    scores, target = random_scores(6, 7), target_of(kind)
    ours = entmax_loss(scores, target, 1.0, reduction=reduction, **options)
    theirs = functional.cross_entropy(scores, target, reduction=reduction, **options)
    assert_equal_losses_and_gradients(ours, theirs, scores)


@reductions
def test_alpha_one_ignores_what_cross_entropy_ignores(reduction: str) -> None:
    scores, target = random_scores(6, 7), INDEX.clamp_min(0)
    ours = entmax_loss(scores, target, 1.0, reduction=reduction, ignore_index=3)
    theirs = functional.cross_entropy(scores, target, reduction=reduction, ignore_index=3)
    assert_equal_losses_and_gradients(ours, theirs, scores)


class TestTargetsWhoseWeightsSumToZero:
    """A weighted mean divides by that sum: cross-entropy is nan, and our loss is not divided."""

    INDEX = torch.tensor([2, -100, 2, 2])  # class 2 has weight 0

    def test_make_cross_entropy_nan(self) -> None:
        assert functional.cross_entropy(random_scores(4, 7), self.INDEX, weight=WEIGHT).isnan()

    @pytest.mark.parametrize("reduction", ["sum", "mean"])
    def test_have_loss_0(self, reduction: str) -> None:
        scores = random_scores(4, 7)
        loss = entmax_loss(scores, self.INDEX, 1.0, weight=WEIGHT, reduction=reduction)
        assert loss.item() == 0

    @pytest.mark.parametrize("reduction", ["sum", "mean"])
    def test_have_gradient_0(self, reduction: str) -> None:
        scores = random_scores(4, 7)
        loss = entmax_loss(scores, self.INDEX, 1.0, weight=WEIGHT, reduction=reduction)
        assert not torch.autograd.grad(loss, scores)[0].any()

    @pytest.mark.parametrize("reduction", ["sum", "mean"])
    def test_have_the_sum_of_cross_entropy_under_smoothing(self, reduction: str) -> None:
        """Smoothing gives probability to other classes, whose weights are positive."""
        scores, options = random_scores(4, 7), {"weight": WEIGHT, "label_smoothing": 0.1}
        ours = entmax_loss(scores, self.INDEX, 1.0, reduction=reduction, **options)
        theirs = functional.cross_entropy(scores, self.INDEX, reduction="sum", **options)
        assert float(theirs) > 0
        assert_equal_losses_and_gradients(ours, theirs, scores)


def target_for(shape: tuple[int, ...]) -> Tensor:
    """Return random classes for scores of a shape, as cross-entropy takes them.

    The classes are the second dimension of the scores, or their only one.
    """
    return torch.randint(7, shape[:1] + shape[2:] if len(shape) > 1 else ())


@shapes
@reductions
@pytest.mark.parametrize("alpha", [1.0, 1.5])
def test_losses_have_the_shape_of_cross_entropy(
    shape: tuple[int, ...], alpha: float, reduction: str
) -> None:
    scores, target = torch.randn(shape), target_for(shape)
    theirs = functional.cross_entropy(scores, target, reduction=reduction)
    assert entmax_loss(scores, target, alpha, reduction=reduction).shape == theirs.shape


@shapes
@reductions
def test_alpha_one_is_cross_entropy_in_any_shape(shape: tuple[int, ...], reduction: str) -> None:
    scores, target = torch.randn(shape), target_for(shape)
    ours = entmax_loss(scores, target, 1.0, reduction=reduction)
    theirs = functional.cross_entropy(scores, target, reduction=reduction)
    assert torch.allclose(ours, theirs, atol=1e-6)


# --- the definition ---


def one_hot(index: Tensor, classes: int) -> Tensor:
    return functional.one_hot(index, classes).double()


@sizes
def test_losses_of_classes_equal_the_definition(alpha: float, classes: int) -> None:
    scores, index = torch.randn(9, classes) * 3, torch.randint(classes, (9,))
    losses = entmax_loss(scores, index, alpha, reduction="none").double()
    expected = loss_oracle(scores, one_hot(index, classes), alpha)
    assert torch.allclose(losses, expected, rtol=1e-5, atol=4e-6)


@sizes
def test_losses_of_distributions_equal_the_definition(alpha: float, classes: int) -> None:
    scores, target = torch.randn(9, classes) * 3, torch.rand(9, classes).softmax(1)
    losses = entmax_loss(scores, target, alpha, reduction="none").double()
    assert torch.allclose(losses, loss_oracle(scores, target, alpha), rtol=1e-5, atol=4e-6)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int32])
def test_any_integers_are_classes(dtype: torch.dtype) -> None:
    scores, index = random_scores(3, 7), torch.tensor([2, 0, 6])
    assert torch.equal(entmax_loss(scores, index.to(dtype)), entmax_loss(scores, index))
