"""Rows with nan or infinity, and rows of -inf alone, in every implementation of entmax."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from onmt_entmax.sparse import entmax, entmax_loss, log_entmax
from onmt_entmax.sparse.backends import solve
from tests.sparse.implementations import CPU, GPU

INF = float("inf")
# C++ and Triton have code of their own for some alphas, and for rows of several hundred scores.
UP_TO_2 = [(1.2, 700), (1.5, 7), (2.0, 700)]
ALL = [(1.0, 7), *UP_TO_2, (2.5, 7)]


def on(implementations: list[str]) -> pytest.MarkDecorator:
    """Run a test for each implementation; skip it if this machine or process has none of them."""
    none = pytest.param("none", marks=pytest.mark.skip("no such implementation runs here"))
    return pytest.mark.parametrize("implementation", implementations or [none], indirect=True)


on_cpus, on_gpus = on(CPU), on(GPU)
of_all_alphas = pytest.mark.parametrize(("alpha", "length"), ALL)
of_alphas_that_kernels_solve = pytest.mark.parametrize(("alpha", "length"), UP_TO_2)


@of_all_alphas
def test_nan_and_infinity_stay_in_their_rows(alpha: float, length: int, device: str) -> None:
    scores = torch.randn(5, length, device=device) * 3
    clean = entmax(scores, alpha)
    scores[1, 3], scores[2, 3] = math.nan, INF
    p, logs = entmax(scores, alpha), log_entmax(scores, alpha)
    for result in (p, logs):
        assert result[1:3].isnan().any(1).all()
        assert not result[[0, 3, 4]].isnan().any()
    assert torch.equal(p[[0, 3, 4]], clean[[0, 3, 4]])


@of_all_alphas
def test_losses_of_nan_and_infinity_are_nan(alpha: float, length: int, device: str) -> None:
    scores = torch.randn(4, length, device=device) * 3
    scores[1, 3], scores[2, 3] = math.nan, INF
    target = torch.zeros(4, device=device).long()
    losses = entmax_loss(scores, target, alpha, reduction="none")
    assert losses.isnan().tolist() == [False, True, True, False]


# --- rows of -inf alone: errors on a CPU, and nan on a GPU, which would have to be waited for ----

Function = Callable[[Tensor, float | Tensor], Tensor]


def shifted_conjugates(scores: Tensor, alpha: float | Tensor) -> Tensor:
    return solve(scores, alpha, scores.clone())[0]


functions = pytest.mark.parametrize("function", [entmax, log_entmax, shifted_conjugates])
mappings = pytest.mark.parametrize("mapping", [entmax, log_entmax])


def scores_with_a_row_of_minus_infinity(length: int, device: str) -> Tensor:
    """Return ``(5, length)``, whose fourth row is -inf."""
    scores = torch.randn(5, length, device=device)
    scores[3] = -INF
    return scores


def alpha_of_each_row(alpha: float, device: str) -> Tensor:
    return torch.full((5, 1), alpha, device=device)


@on_cpus
@of_all_alphas
@functions
def test_a_row_of_minus_infinity_is_refused_on_a_cpu(
    function: Function, alpha: float, length: int, device: str
) -> None:
    scores = scores_with_a_row_of_minus_infinity(length, device)
    with pytest.raises(ValueError, match="-inf everywhere"):
        function(scores, alpha)


@on_cpus
@of_all_alphas
@mappings
def test_a_row_of_minus_infinity_with_its_own_alpha_is_refused_on_a_cpu(
    mapping: Function, alpha: float, length: int, device: str
) -> None:
    scores = scores_with_a_row_of_minus_infinity(length, device)
    with pytest.raises(ValueError, match="-inf everywhere"):
        mapping(scores, alpha_of_each_row(alpha, device))


@on_gpus
@of_alphas_that_kernels_solve
@functions
def test_a_row_of_minus_infinity_is_nan_on_a_gpu(
    function: Function, alpha: float, length: int, device: str
) -> None:
    scores = scores_with_a_row_of_minus_infinity(length, device)
    assert function(scores, alpha)[3].isnan().any()


@on_gpus
@of_alphas_that_kernels_solve
@mappings
def test_a_row_of_minus_infinity_with_its_own_alpha_is_nan_on_a_gpu(
    mapping: Function, alpha: float, length: int, device: str
) -> None:
    scores = scores_with_a_row_of_minus_infinity(length, device)
    assert mapping(scores, alpha_of_each_row(alpha, device))[3].isnan().any()
