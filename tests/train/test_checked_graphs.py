"""`cuda_graphs: check` compares the first replay of each graph with a plain call.

On a CPU there are no graphs: here, other functions stand in for them, which do something wrong.
`test_recorded_updates.py` has which updates are recorded.
"""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from onmt_entmax.errors import UserError
from onmt_entmax.train.graphs import Recorder
from onmt_entmax.train.update import Update
from tests.train.updates import SENTENCES, batch_of, make_update, model_of, update_of

Replay = Callable[[], object]


def record_on_stale_memory(update: Update, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the next graph of an update read its batch with the sentences in another order."""

    def record(function: Replay) -> Replay:
        (ids,) = update._padded_inputs._memory.values()  # what a graph reads, for the only shape
        recorded = ids.clone()

        def replay() -> None:
            ids.copy_(recorded.roll(1))
            function()
            ids.copy_(recorded)

        return replay

    monkeypatch.setattr(update.recorder, "_capture", record)


def test_a_graph_on_stale_memory_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of()
    model.encoder.fixed_shapes = model.decoder.fixed_shapes = True  # as on a GPU
    update = update_of(model, graphs="check")
    make_update(update)  # a plain one; the next is recorded
    record_on_stale_memory(update, monkeypatch)
    with pytest.raises(UserError, match="differs from a plain update"):
        update.add(batch_of(0), SENTENCES)


# --- how much a graph may differ ---------------------------------------------------------------


def sum_by_a_wrong_graph(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> Tensor:
    """Add 1 to a thousand, twice: by a plain call, and by a graph that adds 2. Return the sum.

    Products are in TF32, as far as PyTorch says.
    """
    monkeypatch.setattr(torch, "get_float32_matmul_precision", lambda: "high")
    total = torch.tensor([1000], dtype=dtype)
    recorder = Recorder(torch.device("cpu"), "check")

    def record(function: Replay) -> Replay:
        return lambda: total.add_(2)

    monkeypatch.setattr(recorder, "_capture", record)
    for _ in range(2):
        recorder.call("a sum", lambda: total.add_(1), lambda: [total])
    return total


def test_tf32_excuses_a_difference_of_one_in_a_thousand_of_float32(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What counts is the plain call, which the check makes in any case."""
    assert sum_by_a_wrong_graph(torch.float32, monkeypatch).item() == 1000 + 1 + 1


@pytest.mark.parametrize("dtype", [torch.float64, torch.int64])
def test_tf32_excuses_no_difference_of_other_types(
    dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UserError, match="a sum differs"):
        sum_by_a_wrong_graph(dtype, monkeypatch)
