"""The factor of calibration minimises the Brier score of an output layer's scores."""

import pytest
import torch
from torch import Tensor

from onmt_entmax.sparse import entmax
from onmt_entmax.train.calibration import calibrating_factor

ALPHAS = [1.0, 1.5, 2.0, 3.0]


def scores_and_targets(spread: float) -> tuple[Tensor, Tensor]:
    """Return random scores ``(200, 7)``, and targets that often have the best of them."""
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(200, 7, generator=generator)
    targets = (scores + torch.randn(200, 7, generator=generator)).argmax(1)
    return spread * scores, targets


@pytest.mark.parametrize("spread", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("alpha", ALPHAS)
def test_the_factor_has_the_smallest_brier_score(alpha: float, spread: float) -> None:
    """It is compared with the factors from 1/4 to 4, in steps of 1 %."""
    scores, targets = scores_and_targets(spread)
    one_hot = torch.nn.functional.one_hot(targets, 7)
    factors = [1.01**power for power in range(-139, 140)]
    distances = [
        float((entmax(factor * scores.double(), alpha) - one_hot).square().sum(1).mean())
        for factor in factors
    ]
    best = factors[distances.index(min(distances))]
    assert calibrating_factor(scores, targets, alpha) == pytest.approx(best, rel=0.02)


@pytest.mark.parametrize(("alpha", "margin"), [(1.5, 2.0), (2.0, 1.0), (3.0, 0.5)])
def test_the_factor_is_the_smallest_with_a_perfect_score(alpha: float, margin: float) -> None:
    """A token has all probability if its score exceeds all others by 1 / (alpha - 1) or more.

    Here the targets' scores exceed the others by 1 and 2, so the smallest factor is the margin.
    """
    scores, targets = torch.tensor([[0.0, 1.0, -3.0], [4.0, 2.0, 0.0]]), torch.tensor([1, 0])
    assert calibrating_factor(scores, targets, alpha) == pytest.approx(margin, rel=0.01)


def test_the_factor_is_at_most_4() -> None:
    """Without a limit it would be infinite: softmax gets ever nearer to a correct prediction."""
    factor = calibrating_factor(torch.tensor([[0.0, 1.0]]), torch.tensor([1]), 1.0)
    assert factor == pytest.approx(4, rel=0.01)


def test_the_factor_is_at_least_a_quarter() -> None:
    """Without a limit it would be 0: the target has the lowest score."""
    factor = calibrating_factor(torch.tensor([[1.0, 0.0]]), torch.tensor([1]), 1.5)
    assert factor == pytest.approx(1 / 4, rel=0.01)
