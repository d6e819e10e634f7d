"""`entmax_loss` of impossible classes, half types, scores far from 0, and what it refuses."""

import pytest
import torch
from torch import Tensor

from onmt_entmax.sparse import entmax_loss

INDEX = torch.tensor([0, 1, -100, 3, 6, 2])


@pytest.mark.parametrize("alpha", [1.0, 1.2, 2.0, 2.5])
class TestImpossibleClasses:
    """With a score of -inf: class 1 in the first row, class 2 in the second."""

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


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
class TestHalfTypes:
    @pytest.fixture
    def z(self, dtype: torch.dtype) -> Tensor:
        return (torch.randn(5, 40) * 3).to(dtype).requires_grad_()

    @pytest.fixture
    def index(self) -> Tensor:
        return torch.randint(40, (5,))

    def test_are_computed_in_float32(self, z: Tensor, index: Tensor, dtype: torch.dtype) -> None:
        assert torch.equal(entmax_loss(z, index), entmax_loss(z.float(), index).to(dtype))

    def test_have_gradients_of_their_type(
        self, z: Tensor, index: Tensor, dtype: torch.dtype
    ) -> None:
        entmax_loss(z, index).backward()
        assert z.grad.dtype == dtype

    def test_give_float32_under_autocast(
        self, z: Tensor, index: Tensor, dtype: torch.dtype
    ) -> None:
        with torch.autocast("cpu", dtype=dtype):
            assert entmax_loss(z, index).dtype == torch.float32

    def test_of_autocast_do_not_change_a_loss_in_float32(
        self, z: Tensor, index: Tensor, dtype: torch.dtype
    ) -> None:
        options = {"weight": torch.ones(40), "label_smoothing": 0.1}
        plain = entmax_loss(z.float(), index, **options)
        with torch.autocast("cpu", dtype=dtype):
            assert entmax_loss(z.float(), index, **options) == plain


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param({"alpha": 0.5}, "alpha must be a number from 1", id="alpha below 1"),
        pytest.param({"reduction": "max"}, "reduction", id="an unknown reduction"),
        pytest.param(
            {"label_smoothing": 1.5}, "label_smoothing", id="more smoothing than probability"
        ),
        pytest.param({"weight": torch.ones(3)}, "weight", id="too few weights"),
        pytest.param(
            {"weight": torch.ones(4, requires_grad=True)},
            "weight has no gradient",
            id="learned weights",
        ),
        pytest.param(
            {"target": torch.tensor([0, 9])}, "not a class from 0 to 3", id="an unknown class"
        ),
        pytest.param({"target": torch.tensor([0, 1, 2])}, "does not fit", id="too many targets"),
        pytest.param(
            {"target": torch.rand(2, 3)}, "does not fit", id="too few classes of a distribution"
        ),
        pytest.param({"scores": torch.tensor(1.0)}, "dimension", id="a number for scores"),
        pytest.param(
            {"scores": torch.full((2, 4), -float("inf"))},
            "-inf everywhere",
            id="no class is possible",
        ),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        entmax_loss(**{"scores": torch.randn(2, 4), "target": torch.tensor([0, 1])} | arguments)


@pytest.mark.parametrize("alpha", [1.0, 1.5])
@pytest.mark.parametrize("label", [0, 1])
def test_a_class_of_weight_zero_may_be_impossible_under_smoothing(alpha: float, label: int) -> None:
    scores = torch.tensor([[1.0, -float("inf"), 0.5]], requires_grad=True)
    weight = torch.tensor([1.0, 0.0, 1.0])
    loss = entmax_loss(
        scores, torch.tensor([label]), alpha, weight, label_smoothing=0.3, reduction="sum"
    )
    smoothed = torch.full((1, 3), 0.1)
    smoothed[0, label] += 0.7
    assert torch.allclose(loss, entmax_loss(scores, smoothed, alpha, weight, reduction="sum"))
    loss.backward()
    assert torch.isfinite(scores.grad[:, ::2]).all()


@pytest.mark.parametrize(
    ("alpha", "kind", "compiled"),
    [
        (1.0, "classes", False),
        (1.001, "distributions", False),
        (1.2, "classes", False),
        (1.33, "distributions", False),
        (1.5, "classes", False),
        (2.0, "distributions", False),
        (2.5, "classes", False),
        (1.0, "distributions", True),
        (1.5, "classes", True),
    ],
)
def test_scores_far_from_zero_keep_their_digits(alpha: float, kind: str, compiled: bool) -> None:
    """A constant added to all scores changes neither loss nor gradient, as in cross-entropy.

    If float32 has room for it.
    """
    scores = (torch.randn(6, 7) * 2 * 256).round() / 256  # exact, also after the addition
    target = torch.rand(6, 7).softmax(1) if kind == "distributions" else INDEX
    loss = torch.compile(entmax_loss, backend="aot_eager") if compiled else entmax_loss
    smoothing = 0.1 if compiled else 0.0

    def losses_and_gradient(offset: float) -> tuple[Tensor, Tensor]:
        z = (scores + offset).requires_grad_()
        losses = loss(z, target, alpha, reduction="none", label_smoothing=smoothing)
        return losses.detach(), torch.autograd.grad(losses.sum(), z)[0]

    far = losses_and_gradient(8192.0)
    torch.testing.assert_close(far, losses_and_gradient(0.0), rtol=0, atol=1e-6)


@pytest.mark.parametrize("alpha", [1.0, 1.5, 2.5])
@pytest.mark.parametrize(
    ("weight", "compiled"),
    [
        pytest.param(None, False, id="eager"),
        pytest.param(torch.tensor([1.0, 2.0, 0.5]), True, id="compiled, with weights"),
    ],
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
