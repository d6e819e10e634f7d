"""Rounding of `entmax_loss`: scores of 16 bits, and scores far from 0."""

from collections.abc import Callable

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


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_float32_scores_keep_their_digits_under_autocast(dtype: torch.dtype) -> None:
    scores, target = torch.randn(5, 40) * 3, torch.randint(40, (5,))
    weight = torch.ones(40)
    plain = entmax_loss(scores, target, weight=weight, label_smoothing=0.1)
    with torch.autocast("cpu", dtype=dtype):
        assert entmax_loss(scores, target, weight=weight, label_smoothing=0.1) == plain


# --- scores far from 0 -----------------------------------------------------------------------


# Six rows of seven classes, of which the third is ignored.
CLASSES = torch.tensor([0, 1, -100, 3, 6, 2])
DISTRIBUTIONS = torch.linspace(-2, 2, 42).sin().view(6, 7).softmax(1)
targets = pytest.mark.parametrize(
    "target", [CLASSES, DISTRIBUTIONS], ids=["classes", "distributions"]
)
Loss = Callable[..., Tensor]


def check_far_scores(loss: Loss, target: Tensor, alpha: float, label_smoothing: float) -> None:
    """Check that a constant added to all scores changes neither the losses nor their gradient.

    Float32 has room for it: scores are multiples of 1/256 below 64, and the constant is 2 ** 13.
    """
    scores = (torch.randn(6, 7) * 2 * 256).round() / 256
    results = []
    for offset in (8192.0, 0.0):
        z = (scores + offset).requires_grad_()
        losses = loss(z, target, alpha, reduction="none", label_smoothing=label_smoothing)
        results.append((losses.detach(), *torch.autograd.grad(losses.sum(), z)))
    far, near = results
    torch.testing.assert_close(far, near, rtol=0, atol=1e-6)


@targets
@pytest.mark.parametrize("alpha", [1.0, 1.001, 1.2, 1.33, 1.5, 2.0, 2.5])
def test_scores_far_from_zero_keep_their_digits(target: Tensor, alpha: float) -> None:
    check_far_scores(entmax_loss, target, alpha, label_smoothing=0.0)


# Alphas of three algorithms: compiling takes a second each.
@targets
@pytest.mark.parametrize("alpha", [1.0, 1.33, 2.5])
def test_scores_far_from_zero_keep_their_digits_when_compiled(target: Tensor, alpha: float) -> None:
    torch.compiler.reset()  # PyTorch gives up after eight compilations of a function
    compiled = torch.compile(entmax_loss, backend="aot_eager")
    check_far_scores(compiled, target, alpha, label_smoothing=0.1)
