"""`DeferredWeight`: gradients of a weight and a summand after all steps, with bfloat16 factors."""

import pytest
import torch
from torch import Tensor

from onmt_entmax.recurrence.deferred import DeferredWeight

SIZES = [4, 3]  # rows of two steps
IN, OUT = 5, 6


@pytest.fixture
def deferred() -> DeferredWeight:
    """A weight ``(OUT, IN)`` after the backward passes of both steps."""
    summand = torch.randn(sum(SIZES), OUT)
    deferred = DeferredWeight(torch.randn(OUT, IN), summand, SIZES, torch.bfloat16)
    deferred.start_backward()
    for step, rows in enumerate(SIZES):
        deferred.inputs[step].copy_(torch.randn(rows, IN))
        deferred.gradients[step].copy_(torch.randn(rows, OUT))
    return deferred


@pytest.fixture
def gradients_of_steps(deferred: DeferredWeight) -> Tensor:
    """What the steps wrote into `gradients`, ``(rows, OUT)``; `finish` frees that memory."""
    return torch.cat([*deferred.gradients]).float()


def test_steps_write_into_memory_of_the_type_of_the_factors(deferred: DeferredWeight) -> None:
    """Then no product converts anything, and the memory is half of what float32 would take."""
    assert deferred.all_gradients is not None
    assert deferred.all_inputs.dtype == deferred.all_gradients.dtype == torch.bfloat16


def test_the_gradient_of_the_weight_is_the_sum_over_all_rows(
    deferred: DeferredWeight, gradients_of_steps: Tensor
) -> None:
    expected = gradients_of_steps.t() @ torch.cat([*deferred.inputs]).float()
    weight, _ = deferred.finish()
    # The factors are exact. The sums, of seven products, may be rounded to bfloat16: by at most
    # 2 ** -8 of their size, and of partial sums, which may be larger.
    torch.testing.assert_close(weight, expected, rtol=0.01, atol=0.05)


def test_the_gradient_of_the_summand_is_that_of_the_steps(
    deferred: DeferredWeight, gradients_of_steps: Tensor
) -> None:
    _, summand = deferred.finish()
    assert torch.equal(summand, gradients_of_steps)


def test_gradients_have_the_type_of_the_weight(deferred: DeferredWeight) -> None:
    assert [gradient.dtype for gradient in deferred.finish()] == [torch.float32] * 2


def test_a_second_backward_pass_may_start_after_the_first(deferred: DeferredWeight) -> None:
    deferred.finish()
    assert deferred.start_backward()
