"""Results are equal to the last bit for every number of threads."""

from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor

from onmt_entmax.sparse import entmax, entmax_loss

# C++ gives a thread at least 65,536 scores: four parts, so that each of three threads has one.
ROWS, CLASSES = 64, 4096


@pytest.fixture(autouse=True)
def restored_threads() -> Iterator[None]:
    """Give later tests the number of threads that PyTorch had before."""
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


def probabilities(scores: Tensor) -> Tensor:
    return entmax(scores, 1.33)


def losses(scores: Tensor) -> Tensor:
    return entmax_loss(scores, torch.arange(ROWS), 1.5, reduction="none")


@pytest.mark.parametrize("function", [probabilities, losses])
def test_threads_change_neither_values_nor_gradients(
    function: Callable[[Tensor], Tensor],
) -> None:
    """Scores are close in the first rows and far apart in the last, so threads differ in work."""
    scores = torch.randn(ROWS, CLASSES) * torch.logspace(-2, 1, ROWS).unsqueeze(1)

    def value_and_gradient(threads: int) -> tuple[Tensor, Tensor]:
        torch.set_num_threads(threads)
        leaf = scores.clone().requires_grad_()
        value = function(leaf)
        (gradient,) = torch.autograd.grad(value.square().sum(), leaf)
        return value, gradient

    results = value_and_gradient(threads=3)
    torch.testing.assert_close(results, value_and_gradient(threads=1), rtol=0, atol=0)
