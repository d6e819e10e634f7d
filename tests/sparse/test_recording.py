"""Which tensors have values that code outside PyTorch may read."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch._subclasses import FakeTensorMode

from onmt_entmax.sparse.recording import has_values, is_readable_now


def test_a_tensor_on_a_cpu_is_readable_now() -> None:
    assert is_readable_now(torch.zeros(3))


def test_an_empty_tensor_has_values() -> None:
    assert has_values(torch.zeros(0))


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: torch._neg_view(torch.ones(3)), id="lazily negated"),
        pytest.param(lambda: torch._efficientzerotensor(3), id="zeros without storage"),
        # It imports PyTorch's compiler, which takes a second.
        pytest.param(lambda: FakeTensorMode().from_tensor(torch.ones(3)), id="fake"),
    ],
)
def test_a_tensor_whose_memory_has_other_numbers_has_no_values(make: Callable[[], Tensor]) -> None:
    assert not has_values(make())


def test_a_tensor_that_is_traced_has_no_values() -> None:
    answers = []

    def record(x: Tensor) -> Tensor:
        answers.append(has_values(x))
        return x + 1

    torch.jit.trace(record, torch.ones(3), check_trace=False)
    assert answers == [False]


def test_a_transform_of_torch_func_is_refused() -> None:
    with pytest.raises(RuntimeError, match=r"transforms of torch\.func"):
        torch.func.grad(lambda x: x * has_values(x))(torch.tensor(1.0))
