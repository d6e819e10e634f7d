"""Deferred gradients of weights, with factors in bfloat16."""

import pytest
import torch
from torch import Tensor

from onmt_entmax.recurrence.deferred import DeferredWeight

SIZES = [4, 3]  # rows of two steps
IN, OUT = 5, 6


@pytest.fixture
def deferred() -> DeferredWeight:
    """A weight after the backward passes of both steps."""
    summand = torch.randn(sum(SIZES), OUT)
    deferred = DeferredWeight(torch.randn(OUT, IN), summand, SIZES, torch.bfloat16)
    deferred.start_backward()
    for step, rows in enumerate(SIZES):
        deferred.inputs[step].copy_(torch.randn(rows, IN))
        deferred.gradients[step].copy_(torch.randn(rows, OUT))
    return deferred


@pytest.fixture
def gradients_of_steps(deferred: DeferredWeight) -> Tensor:
    return torch.cat([*deferred.gradients]).float()


def test_steps_write_what_products_read(deferred: DeferredWeight) -> None:
    """Nothing is converted, and memory is half."""
    assert deferred.all_gradients is not None
    assert deferred.all_inputs.dtype == deferred.all_gradients.dtype == torch.bfloat16


def test_the_gradient_of_the_weight_is_one_product(
    deferred: DeferredWeight, gradients_of_steps: Tensor
) -> None:
    expected = gradients_of_steps.t() @ torch.cat([*deferred.inputs]).float()
    weight, _ = deferred.finish()
    torch.testing.assert_close(weight, expected, rtol=0.01, atol=0.05)


def test_the_gradient_of_the_summand_is_that_of_the_steps(
    deferred: DeferredWeight, gradients_of_steps: Tensor
) -> None:
    _, summand = deferred.finish()
    assert torch.equal(summand, gradients_of_steps)


def test_gradients_have_the_type_of_the_weight(deferred: DeferredWeight) -> None:
    assert [gradient.dtype for gradient in deferred.finish()] == [torch.float32] * 2


def test_a_second_backward_pass_may_start(deferred: DeferredWeight) -> None:
    deferred.finish()
    assert deferred.start_backward()
