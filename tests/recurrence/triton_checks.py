"""Steps in Triton against PyTorch's.

Not collected by itself: test_backends.py runs it in a process of its own, in Triton's interpreter
or on a GPU.
"""

import os

import pytest
import torch

from onmt_entmax.recurrence.backends.choice import backend_for
from onmt_entmax.recurrence.backends.pytorch import PyTorchBackend
from onmt_entmax.recurrence.source_memory import RowSources, SourceMemory
from tests.recurrence.backend_checks import Backend, check_attention, check_cells, dropout

DEVICE = "cpu" if os.environ.get("TRITON_INTERPRET") == "1" else "cuda"


@pytest.fixture
def triton_backend() -> Backend:
    """Triton's, which only this process can import: see test_backends.py."""
    from onmt_entmax.recurrence.backends.triton import TritonBackend

    return TritonBackend


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
    check_attention(triton_backend, alpha=alpha, has_dropout=has_dropout, source=13, device=DEVICE)


@pytest.mark.parametrize(
    ("alpha", "beyond_longest", "is_tritons"),
    [
        pytest.param(2.0, 0, True, id="the largest alpha and the longest source"),
        pytest.param(2.1, 0, False, id="an alpha above 2"),
        pytest.param(1.5, 1, False, id="a longer source"),
    ],
)
def test_long_sources_and_alphas_above_two_are_pytorchs(
    triton_backend: Backend, alpha: float, beyond_longest: int, is_tritons: bool
) -> None:
    from onmt_entmax.recurrence.backends.triton import LONGEST_SOURCE

    keys = torch.zeros(1, LONGEST_SOURCE + beyond_longest, 2, device=DEVICE)
    memory = SourceMemory(keys, keys, lengths=torch.zeros(1, dtype=torch.int64, device=DEVICE))
    expected = triton_backend if is_tritons else PyTorchBackend
    assert backend_for(keys[0], RowSources(memory, owners=None, alpha=alpha)) is expected
