"""Rounding of `entmax_loss`: scores of 16 bits, and scores far from 0."""

import pytest
import torch
from torch import Tensor

from onmt_entmax.sparse import entmax_loss


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
class TestScoresOf16Bits:
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

    def test_are_not_made_of_float32_under_autocast(
        self, z: Tensor, index: Tensor, dtype: torch.dtype
    ) -> None:
        options = {"weight": torch.ones(40), "label_smoothing": 0.1}
        plain = entmax_loss(z.float(), index, **options)
        with torch.autocast("cpu", dtype=dtype):
            assert entmax_loss(z.float(), index, **options) == plain


# Six rows of seven classes, of which the third is ignored.
CLASSES = torch.tensor([0, 1, -100, 3, 6, 2])


def losses_and_gradient(
    scores: Tensor, target: Tensor, alpha: float, *, is_compiled: bool, label_smoothing: float
) -> tuple[Tensor, Tensor]:
    """Return the loss of each row, and the gradient of their sum in the scores."""
    loss = torch.compile(entmax_loss, backend="aot_eager") if is_compiled else entmax_loss
    z = scores.clone().requires_grad_()
    losses = loss(z, target, alpha, reduction="none", label_smoothing=label_smoothing)
    return losses.detach(), torch.autograd.grad(losses.sum(), z)[0]


EAGER = [(1.0, False), (1.001, True), (1.2, False), (1.33, True), (1.5, False), (2.0, True),
         (2.5, False)]  # fmt: skip
COMPILED = [(1.0, False), (1.33, True), (2.5, False)]  # which takes a second each


@pytest.mark.parametrize(
    ("alpha", "of_distributions", "is_compiled", "label_smoothing"),
    [
        *(pytest.param(*case, False, 0.0, id=f"eager, {case[0]}") for case in EAGER),
        *(
            pytest.param(*case, True, 0.1, id=f"compiled, smoothing, {case[0]}")
            for case in COMPILED
        ),
    ],
)
def test_scores_far_from_zero_keep_their_digits(
    alpha: float, of_distributions: bool, is_compiled: bool, label_smoothing: float
) -> None:
    """A constant added to all scores changes neither loss nor gradient, as in cross-entropy.

    Float32 has room for it: scores are multiples of 1/256 below 64, and the constant is 2 ** 13.
    """
    torch.compiler.reset()  # PyTorch gives up after eight compilations of a function
    scores = (torch.randn(6, 7) * 2 * 256).round() / 256
    target = torch.rand(6, 7).softmax(1) if of_distributions else CLASSES
    far, near = (
        losses_and_gradient(
            scores + offset,
            target,
            alpha,
            is_compiled=is_compiled,
            label_smoothing=label_smoothing,
        )
        for offset in (8192.0, 0.0)
    )
    torch.testing.assert_close(far, near, rtol=0, atol=1e-6)
