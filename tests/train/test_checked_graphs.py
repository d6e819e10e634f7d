"""`cuda_graphs: check` compares each recorded update with a plain one; see `test_recorded_updates`.

On a CPU, plain calls stand in for graphs. Here they are wrong ones.
"""

from collections.abc import Callable

import pytest
import torch

from onmt_entmax.errors import UserError
from onmt_entmax.train.graphs import Recorder
from tests.train.updates import SENTENCES, batch_of, make_update, model_of, update_of


def test_check_finds_a_graph_on_stale_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stub of a recording works on the sentences of its batch in another order."""
    model = model_of()
    model.encoder.fixed_shapes = model.decoder.fixed_shapes = True  # as on a GPU
    update = update_of(model, graphs="check")
    make_update(update)

    def record_on_stale_memory(function: Callable[[], object]) -> Callable[[], object]:
        (ids,) = update._padded_inputs._memory.values()
        recorded = ids.clone()

        def replay() -> None:
            ids.copy_(recorded.roll(1))
            function()
            ids.copy_(recorded)

        return replay

    monkeypatch.setattr(update.recorder, "_capture", record_on_stale_memory)
    with pytest.raises(UserError, match="differs from a plain update"):
        update.add(batch_of(0), SENTENCES)


def check_wrong_graph(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check a graph that adds 2 to a thousand where its function adds 1, with TF32 products on."""
    monkeypatch.setattr(torch, "get_float32_matmul_precision", lambda: "high")
    total = torch.tensor([1000], dtype=dtype)
    recorder = Recorder(torch.device("cpu"), "check")
    monkeypatch.setattr(recorder, "_capture", lambda function: lambda: total.add_(2))
    for _ in range(2):  # a plain call, and one by the graph
        recorder.call("a sum", lambda: total.add_(1), lambda: [total])


def test_tf32_excuses_small_differences_of_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    check_wrong_graph(torch.float32, monkeypatch)


@pytest.mark.parametrize("dtype", [torch.float64, torch.int64])
def test_tf32_excuses_no_difference_of_other_types(
    dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UserError, match="a sum differs"):
        check_wrong_graph(dtype, monkeypatch)
