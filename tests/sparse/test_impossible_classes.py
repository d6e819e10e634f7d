"""`entmax_loss` with classes whose score is -inf, and with ignored rows that have such classes."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from onmt_entmax.sparse import entmax_loss


@pytest.mark.parametrize("alpha", [1.0, 1.2, 2.0, 2.5])
class TestImpossibleClasses:
    """Class 1 of the first row and class 2 of the second have a score of -inf."""

    @pytest.fixture
    def z(self) -> Tensor:
        rows = [[0.2, -float("inf"), 0.5], [0.1, 0.2, -float("inf")]]
        return torch.tensor(rows, requires_grad=True)

    def test_have_an_infinite_loss_as_targets(self, z: Tensor, alpha: float) -> None:
        losses = entmax_loss(z, torch.tensor([1, 0]), alpha, reduction="none")
        assert losses[0] == float("inf")
        assert losses[1].isfinite()

    def test_have_no_gradient_beside_a_possible_target(self, z: Tensor, alpha: float) -> None:
        losses = entmax_loss(z, torch.tensor([1, 0]), alpha, reduction="none")
        (gradient,) = torch.autograd.grad(losses[1], z)
        assert gradient.isfinite().all()
        assert gradient[1, 2] == 0

    def test_may_have_probability_0_in_the_target(self, z: Tensor, alpha: float) -> None:
        target = torch.tensor([[0.5, 0.0, 0.5], [0.3, 0.7, 0.0]])
        loss = entmax_loss(z, target, alpha)
        assert loss.isfinite()
        assert torch.autograd.grad(loss, z)[0].isfinite().all()


# --- smoothing -------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [1.0, 1.5])
@pytest.mark.parametrize("label", [0, 1])
class TestAnImpossibleClassOfWeightZero:
    """Smoothing gives it a tenth of the target, and its weight takes that away."""

    WEIGHT = torch.tensor([1.0, 0.0, 1.0])

    @pytest.fixture
    def scores(self) -> Tensor:
        return torch.tensor([[1.0, -float("inf"), 0.5]], requires_grad=True)

    @pytest.fixture
    def loss(self, scores: Tensor, alpha: float, label: int) -> Tensor:
        target = torch.tensor([label])
        options: dict[str, Any] = {"label_smoothing": 0.3, "reduction": "sum"}
        return entmax_loss(scores, target, alpha, self.WEIGHT, **options)

    def test_has_the_loss_of_the_smoothed_distribution(
        self, scores: Tensor, loss: Tensor, alpha: float, label: int
    ) -> None:
        smoothed = torch.full((1, 3), 0.1)
        smoothed[0, label] += 0.7
        expected = entmax_loss(scores, smoothed, alpha, self.WEIGHT, reduction="sum")
        torch.testing.assert_close(loss, expected)

    def test_leaves_the_gradient_of_other_classes_finite(
        self, scores: Tensor, loss: Tensor, alpha: float, label: int
    ) -> None:
        (gradient,) = torch.autograd.grad(loss, scores)
        assert gradient[:, ::2].isfinite().all()


WEIGHTS = torch.tensor([1.0, 2.0, 0.5])


@pytest.mark.parametrize(
    ("alpha", "weight", "is_compiled"),
    [
        *(pytest.param(alpha, None, False, id=f"eager, {alpha}") for alpha in (1.0, 1.5, 2.5)),
        # Each is compiled for half a second.
        *(
            pytest.param(alpha, WEIGHTS, True, id=f"compiled, with weights, {alpha}")
            for alpha in (1.0, 2.5)
        ),
    ],
)
class TestIgnoredRowsUnderSmoothing:
    """Rows 1 and 2: smoothing would give a part of the target to a class of row 1, of score -inf.

    In row 2, differences of scores overflow.
    """

    TARGET = torch.tensor([2, -100, -100])

    @pytest.fixture
    def scores(self) -> Tensor:
        rows = [[0.3, -0.2, 0.1], [0.5, -float("inf"), 0.2], [1e38, -3e38, 2e38]]
        return torch.tensor(rows, requires_grad=True)

    @pytest.fixture
    def options(self, weight: Tensor | None) -> dict[str, Any]:
        return {"weight": weight, "label_smoothing": 0.1}

    @pytest.fixture
    def loss(self, is_compiled: bool) -> Callable[..., Tensor]:
        return torch.compile(entmax_loss, backend="aot_eager") if is_compiled else entmax_loss

    def test_have_a_loss_of_0(
        self, loss: Callable[..., Tensor], scores: Tensor, alpha: float, options: dict[str, Any]
    ) -> None:
        losses = loss(scores, self.TARGET, alpha, reduction="none", **options)
        assert losses[1:].tolist() == [0, 0]

    def test_have_a_gradient_of_0(
        self, loss: Callable[..., Tensor], scores: Tensor, alpha: float, options: dict[str, Any]
    ) -> None:
        (gradient,) = torch.autograd.grad(loss(scores, self.TARGET, alpha, **options), scores)
        assert (gradient[1:] == 0).all()

    def test_do_not_change_the_mean_over_the_others(
        self, loss: Callable[..., Tensor], scores: Tensor, alpha: float, options: dict[str, Any]
    ) -> None:
        """Neither its value nor its gradient: the mean is over the weights of the targets."""
        alone = scores.detach()[:1].requires_grad_()
        expected = entmax_loss(alone, self.TARGET[:1], alpha, **options)
        mean = loss(scores, self.TARGET, alpha, **options)
        torch.testing.assert_close(mean, expected)
        (gradient,) = torch.autograd.grad(mean, scores)
        torch.testing.assert_close(gradient[:1], torch.autograd.grad(expected, alone)[0])
