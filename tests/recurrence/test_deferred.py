"""Deferred gradients of weights."""

import torch

from onmt_entmax.recurrence.deferred import DeferredWeight


def test_a_recurrence_keeps_factors_in_their_type() -> None:
    """What a step writes is what its products read: nothing is converted, and memory is half."""
    deferred = DeferredWeight(torch.randn(6, 5), torch.randn(7, 6), [4, 3], torch.bfloat16)
    deferred.start_backward()
    for number, rows in enumerate((4, 3)):
        deferred.inputs[number].copy_(torch.randn(rows, 5))
        deferred.gradients[number].copy_(torch.randn(rows, 6))
    assert deferred.all_inputs.dtype == deferred.all_gradients.dtype == torch.bfloat16
    x, grad = deferred.all_inputs.float(), deferred.all_gradients.float()
    weight, summand = deferred.finish()
    assert weight.dtype == summand.dtype == torch.float32
    torch.testing.assert_close(weight, grad.t() @ x, rtol=0.01, atol=0.05)
    assert torch.equal(summand, grad[:7])
