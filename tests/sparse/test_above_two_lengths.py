"""Entmax with alphas above 2 of random rows, short and long, equals its definition."""

from functools import cache
from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from onmt_entmax.sparse import entmax, entmax_loss, reference
from tests.oracles import loss_oracle

ALPHAS = (2.0, 2.0000001, 2.25, 2.5, 3.0, 4.0, 10.0)
# Standard deviations of the scores. From alpha 2 to alpha 3, the supports of 2,500 scores have
# 2,500 to about 120 scores with the first one, 120 to 10 with the second, 6 to 2 with the third.
SPREADS = (1e-4, 0.02, 1.0)

# A tolerance in machine epsilons: the few operations of a probability have an error of up to four,
# both in the definition and in what is tested.
EPSILONS = 8
# Scores and thresholds have errors of some 1e-16. Because of these, probabilities up to this may
# be 0.
RESOLVED = 1e-12
# Eight machine epsilons in float32. In float64, sums over 2,500 scores lose up to three digits.
LOSS_TOLERANCES = {torch.float32: 1e-6, torch.float64: 1e-13}

# The Triton kernels take alphas up to 2 only.
on_each_implementation = pytest.mark.usefixtures("cpu_implementation")


class Rows(NamedTuple):
    """Rows for each of ALPHAS with each of SPREADS, in the order of ALPHAS."""

    scores: Tensor
    """``(rows, length)``, with a tie in each row."""
    alphas: Tensor
    """``(rows, 1)``."""
    exact: Tensor
    """Their probabilities by definition in float64, ``(rows, length)``."""


@cache  # for all tests and implementations: the definition takes longer than all of them
def rows_of(length: int, dtype: torch.dtype) -> Rows:
    numbers = torch.randn(
        len(ALPHAS), 1, length, dtype=torch.float64, generator=torch.Generator().manual_seed(0)
    )
    scores = (
        (numbers * torch.tensor(SPREADS, dtype=torch.float64).view(-1, 1)).flatten(0, 1).to(dtype)
    )
    scores[:, length // 2] = scores[:, 0]
    alphas = torch.tensor(ALPHAS, dtype=torch.float64).repeat_interleave(len(SPREADS)).unsqueeze(1)
    return Rows(scores, alphas, reference.mapping(scores.double(), alphas, logs=False))


@pytest.fixture(params=[torch.float32, torch.float64], ids=["float32", "float64"])
def dtype(request: pytest.FixtureRequest) -> torch.dtype:
    dtype: torch.dtype = request.param
    return dtype


# C++ computes with vectors of 16 scores in float32, of 8 in float64, and finds the support of rows
# of 512 scores or more by blocks.
@pytest.fixture(params=[1, 3, 16, 17, 130, 700, 2500], ids=lambda length: f"{length} scores")
def rows(request: pytest.FixtureRequest, dtype: torch.dtype) -> Rows:
    return rows_of(request.param, dtype)


@on_each_implementation
def test_probabilities_equal_the_definition(rows: Rows, dtype: torch.dtype) -> None:
    p = entmax(rows.scores, rows.alphas).double()
    assert (p - rows.exact).abs().max() <= EPSILONS * torch.finfo(dtype).eps


@on_each_implementation
def test_the_support_has_the_scores_that_it_has_by_definition(rows: Rows) -> None:
    p = entmax(rows.scores, rows.alphas)
    assert (p > 0)[rows.exact >= RESOLVED].all()


@on_each_implementation
def test_an_alpha_gives_the_same_as_a_number_and_in_a_tensor(rows: Rows) -> None:
    by_tensor = entmax(rows.scores, rows.alphas)
    numbers = rows.alphas.squeeze(1).tolist()
    by_number = torch.stack([entmax(z, a) for z, a in zip(rows.scores, numbers, strict=True)])
    torch.testing.assert_close(by_number, by_tensor, rtol=1e-6, atol=1e-7)  # float32's rounding


@on_each_implementation
def test_losses_equal_the_definition(rows: Rows, dtype: torch.dtype) -> None:
    target = torch.zeros(len(rows.scores)).long()
    one_hot = torch.zeros(len(SPREADS), rows.scores.shape[1])
    one_hot[:, 0] = 1
    losses = entmax_loss(rows.scores, target, rows.alphas, reduction="none").double()
    of_each_alpha = rows.scores.split(len(SPREADS))
    expected = [
        loss_oracle(z, one_hot, alpha) for z, alpha in zip(of_each_alpha, ALPHAS, strict=True)
    ]
    tolerance = LOSS_TOLERANCES[dtype]
    torch.testing.assert_close(losses, torch.cat(expected), rtol=tolerance, atol=tolerance)
