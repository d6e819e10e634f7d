"""Steps in Triton equal steps in PyTorch.

Not collected by itself: test_backends.py runs it in a process of its own, in Triton's interpreter
or on a GPU.
"""

import os

import pytest
import torch

from onmt_entmax.recurrence.backends.choice import backend_for
from onmt_entmax.recurrence.backends.pytorch import PyTorchBackend
from onmt_entmax.recurrence.source_memory import RowSources, SourceMemory
from tests.recurrence.attention_checks import check_attention
from tests.recurrence.backend_checks import Backend, dropout
from tests.recurrence.cell_checks import check_cells

DEVICE = "cpu" if os.environ.get("TRITON_INTERPRET") == "1" else "cuda"


@pytest.fixture
def triton_backend() -> Backend:
    """Triton's backend. Its module needs a GPU or the interpreter, so it is not imported above."""
    from onmt_entmax.recurrence.backends.triton import TritonBackend

    return TritonBackend


@pytest.fixture
def longest_source() -> int:
    """The length of the longest source that Triton's attention takes."""
    from onmt_entmax.recurrence.backends.triton import LONGEST_SOURCE

    return LONGEST_SOURCE


@dropout
@pytest.mark.parametrize("directions", [(), (1,), (2,)])
def test_cells_equal_those_of_pytorch(
    triton_backend: Backend, directions: tuple[int, ...], has_dropout: bool
) -> None:
    check_cells(triton_backend, has_dropout=has_dropout, device=DEVICE, directions=directions)


@pytest.mark.parametrize(
    ("alpha", "has_dropout"),
    [(1.0, False), (1.05, True), (1.33, False), (1.5, True), (2.0, False)],
)
def test_attention_equals_that_of_pytorch(
    triton_backend: Backend, alpha: float, has_dropout: bool
) -> None:
    check_attention(
        triton_backend, alpha=alpha, has_dropout=has_dropout, source_length=13, device=DEVICE
    )


def backend_for_attention(alpha: float, source_length: int) -> Backend:
    """Return the backend that is chosen for a step with one row."""
    keys = torch.zeros(1, source_length, 2, device=DEVICE)
    memory = SourceMemory(keys, keys, lengths=torch.ones(1, dtype=torch.int64, device=DEVICE))
    return backend_for(keys[0], RowSources(memory, owners=None, alpha=alpha))


def test_triton_attends_with_the_largest_alpha_to_the_longest_source(
    triton_backend: Backend, longest_source: int
) -> None:
    assert backend_for_attention(2.0, longest_source) is triton_backend


def test_pytorch_attends_to_a_longer_source(longest_source: int) -> None:
    assert backend_for_attention(1.5, longest_source + 1) is PyTorchBackend


def test_pytorch_attends_with_an_alpha_above_two(longest_source: int) -> None:
    assert backend_for_attention(2.1, longest_source) is PyTorchBackend
