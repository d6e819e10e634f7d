"""Arguments of entmax: empty tensors, scalars, types under autocast, and wrong ones."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from onmt_entmax.sparse import Entmax, entmax, log_entmax

any_alpha = pytest.mark.parametrize("alpha", [1.0, 1.01, 1.5, 2.2])


@any_alpha
@pytest.mark.parametrize("shape", [(0, 5), (5, 0)])
def test_empty_tensors_stay_empty(alpha: float, shape: tuple[int, int]) -> None:
    assert entmax(torch.empty(shape), alpha).shape == shape


@any_alpha
def test_a_scalar_has_all_probability(alpha: float) -> None:
    assert entmax(torch.tensor(-3.0), alpha) == 1


@any_alpha
def test_a_scalar_has_the_logarithm_0(alpha: float) -> None:
    assert log_entmax(torch.tensor(-3.0), alpha) == 0


def test_logarithms_of_float16_reach_its_smallest_number() -> None:
    assert log_entmax(torch.tensor([65504.0, -65504.0]).half(), 1.0)[1] == -65504


@any_alpha
@pytest.mark.parametrize("rows", [0, 3])
def test_autocast_gives_float32_as_softmax_does(alpha: float, rows: int) -> None:
    half = torch.randn(rows, 5).bfloat16()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert entmax(half, alpha).dtype == torch.float32


def test_the_scores_are_not_changed(device: str) -> None:
    scores = torch.randn(2, 5, 3, 7, device=device)
    before = scores.clone()
    entmax(scores, 1.5)
    assert torch.equal(scores, before)


wrong_alphas = pytest.mark.parametrize("wrong", [0.99, -1.0, math.nan, math.inf])
functions = pytest.mark.parametrize("function", [entmax, log_entmax])


@wrong_alphas
@functions
def test_a_wrong_alpha_is_refused(function: Callable[..., Tensor], wrong: float) -> None:
    with pytest.raises(ValueError, match="alpha must be a number from 1"):
        function(torch.zeros(2, 3), wrong)


@wrong_alphas
@functions
def test_a_wrong_alpha_among_others_is_refused(
    function: Callable[..., Tensor], wrong: float
) -> None:
    with pytest.raises(ValueError, match="every alpha must be a number from 1"):
        function(torch.zeros(2, 3), torch.tensor([[1.5], [wrong]]))


@wrong_alphas
def test_the_module_refuses_a_wrong_alpha(wrong: float) -> None:
    with pytest.raises(ValueError, match="alpha must be a number from 1"):
        Entmax(wrong)


def test_scores_of_integers_are_refused() -> None:
    with pytest.raises(ValueError, match="floating point"):
        entmax(torch.tensor([1, 2]))


def test_alphas_that_do_not_fit_the_scores_are_refused() -> None:
    with pytest.raises(ValueError, match="broadcast"):
        entmax(torch.randn(2, 3), torch.tensor([1.5, 1.5, 1.2], requires_grad=True))


def test_a_dimension_that_is_not_there_is_refused() -> None:
    with pytest.raises(IndexError, match="dim must be from -2 to 1, got 2"):
        entmax(torch.zeros(4, 5), 1.5, 2)
