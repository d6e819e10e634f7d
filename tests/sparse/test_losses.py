"""`entmax_loss` equals cross-entropy at alpha 1, and its definition at every alpha."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from onmt_entmax.sparse import entmax_loss
from tests.oracles import loss_oracle
from tests.sparse.loss_cases import (
    INDEX,
    KINDS,
    OPTIONS,
    assert_equal_losses_and_gradients,
    random_scores,
    target_of,
)

reductions = pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
shapes = pytest.mark.parametrize("shape", [(7,), (4, 7), (2, 7, 3, 5)])
# Rows that fill no vector of C++, rows that it divides into blocks, and rows with a deep block.
# Each alpha has two of these lengths.
sizes = pytest.mark.parametrize(
    ("alpha", "classes"),
    [
        (1.0, 7),
        (1.0, 600),
        (1.001, 600),
        (1.001, 5003),
        (1.2, 5003),
        (1.2, 7),
        (1.33, 7),
        (1.33, 600),
        (1.5, 600),
        (1.5, 5003),
        (2.0, 5003),
        (2.0, 7),
        (2.5, 7),
        (2.5, 600),
    ],
)


# --- alpha 1 and cross-entropy ---------------------------------------------------------------


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


# --- the definition --------------------------------------------------------------------------

# Losses in float32 of scores up to about 15, whose rounding is 1e-6: their difference and the
# conjugate's sums have four of these.
RTOL, ATOL = 1e-5, 4e-6


def one_hot(index: Tensor, classes: int) -> Tensor:
    return functional.one_hot(index, classes).double()


@sizes
def test_losses_of_classes_equal_the_definition(alpha: float, classes: int) -> None:
    scores, index = torch.randn(9, classes) * 3, torch.randint(classes, (9,))
    losses = entmax_loss(scores, index, alpha, reduction="none").double()
    expected = loss_oracle(scores, one_hot(index, classes), alpha)
    assert torch.allclose(losses, expected, rtol=RTOL, atol=ATOL)


@sizes
def test_losses_of_distributions_equal_the_definition(alpha: float, classes: int) -> None:
    scores, target = torch.randn(9, classes) * 3, torch.rand(9, classes).softmax(1)
    losses = entmax_loss(scores, target, alpha, reduction="none").double()
    assert torch.allclose(losses, loss_oracle(scores, target, alpha), rtol=RTOL, atol=ATOL)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int32])
def test_any_integers_are_classes(dtype: torch.dtype) -> None:
    scores, index = random_scores(3, 7), torch.tensor([2, 0, 6])
    assert torch.equal(entmax_loss(scores, index.to(dtype)), entmax_loss(scores, index))
