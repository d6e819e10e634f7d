"""Which backend computes a step on a CPU."""

import pytest
import torch

from onmt_entmax.recurrence.backends.choice import backend_for
from onmt_entmax.recurrence.backends.native import NativeBackend, native
from onmt_entmax.recurrence.backends.pytorch import PyTorchBackend
from onmt_entmax.recurrence.source_memory import RowSources, SourceMemory

pytestmark = pytest.mark.skipif(native is None, reason="the native module was not built")

STATES = torch.zeros(3, 4)  # (batch, hidden)


@pytest.fixture(autouse=True)
def no_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unset the variable that lets Triton interpret the GPU kernels on a CPU."""
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)


def test_cells_in_float32_are_native() -> None:
    assert backend_for(STATES) is NativeBackend


@pytest.mark.parametrize(
    "states",
    [STATES.double(), STATES.unsqueeze(0), STATES.to("meta"), torch.nn.Parameter(STATES)],
    ids=["float64", "three dimensions", "a device without memory", "a subclass of Tensor"],
)
def test_other_cells_are_computed_by_pytorch(states: torch.Tensor) -> None:
    assert backend_for(states) is PyTorchBackend


@pytest.mark.parametrize(
    ("alpha", "is_native"),
    [
        pytest.param(1.0, True, id="softmax"),
        pytest.param(1.05, False, id="below 1.1, but not softmax"),
        pytest.param(1.1, True, id="1.1"),
        pytest.param(1.5, True, id="1.5"),
        pytest.param(2.0, True, id="sparsemax"),
        pytest.param(2.5, False, id="above sparsemax"),
    ],
)
def test_attention_is_native_for_softmax_and_alphas_from_1_1_to_2(
    alpha: float, is_native: bool
) -> None:
    keys = torch.zeros(3, 5, 4)  # (batch, positions, hidden)
    memory = SourceMemory(keys, keys, torch.tensor([5, 2, 1]))
    backend = backend_for(STATES, RowSources(memory, None, alpha))
    assert backend is (NativeBackend if is_native else PyTorchBackend)
