"""`Processes.sum_gradients`: each gradient becomes its sum over all processes.

`all_reduce`, by which processes exchange tensors, is replaced: it doubles what it is given, as if
the other of two processes had equal gradients.
"""

import pytest
import torch
from torch import Tensor

from onmt_entmax.parallel.processes import Processes


@pytest.fixture
def messages(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Be one of two processes; return a list that has the numbers in each message."""
    sizes: list[int] = []

    def double(values: Tensor) -> None:
        sizes.append(values.numel())
        values *= 2

    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setattr(torch.distributed, "all_reduce", double)
    return sizes


def parameter(gradient: Tensor | None) -> Tensor:
    """Return a parameter ``(2, 3)`` with a gradient of this shape."""
    parameter = torch.zeros(2, 3, requires_grad=True)
    parameter.grad = gradient
    return parameter


@pytest.mark.usefixtures("messages")
def test_each_parameter_has_the_sum_of_its_own_gradients() -> None:
    gradients = torch.randn(2, 2, 3)
    parameters = [parameter(gradient.clone()) for gradient in gradients]
    Processes().sum_gradients(parameters)
    for summed, gradient in zip(parameters, gradients, strict=True):
        assert summed.grad is not None
        assert summed.grad.equal(2 * gradient)


@pytest.mark.usefixtures("messages")
def test_a_parameter_without_a_gradient_stays_without() -> None:
    trained, unused = parameter(torch.ones(2, 3)), parameter(None)
    Processes().sum_gradients([unused, trained])
    assert trained.grad is not None
    assert trained.grad.equal(torch.full((2, 3), 2.0))
    assert unused.grad is None


def test_all_gradients_are_summed_by_one_message(messages: list[int]) -> None:
    Processes().sum_gradients([parameter(torch.ones(2, 3)) for _ in range(2)])
    assert messages == [12]


def test_without_any_gradient_nothing_is_sent(messages: list[int]) -> None:
    Processes().sum_gradients([parameter(None)])
    assert not messages
