"""Which updates are recorded as CUDA graphs; on a CPU, plain calls stand in for these.

A graph belongs to its settings: the shape of the batch, alphas and dropout. The first update with
some settings is a plain one, the second is recorded, and later ones replay the graph.
"""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from onmt_entmax.model import SparseNMTModel
from onmt_entmax.nn.transformer import attentions
from onmt_entmax.train import graphs as graphs_module
from onmt_entmax.train.update import Update
from tests.train.updates import (
    RATE,
    SENTENCES,
    TRANSFORMER,
    batch_of,
    make_update,
    model_of,
    update_of,
)


def transformer_updates() -> tuple[SparseNMTModel, Update]:
    """Return a Transformer and its updates, after the optimiser's step was recorded.

    That step has a graph of its own, which needs no batch.
    """
    model = model_of(TRANSFORMER, dropout=0.1)
    update = update_of(model)
    for _ in range(2):
        update.step((RATE,))
    return model, update


def test_graphs_are_recorded_up_to_their_largest_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second update records a graph for its shape, and one for the optimiser's step."""
    monkeypatch.setattr(graphs_module, "MOST_GRAPHS", 2)
    update = update_of(model_of())
    captured = []
    for longest in (3, 3, 7, 7, 3):  # of two shapes
        make_update(update, seed=longest, longest=longest)
        captured.append(update.recorder.captured)
    assert captured == [0, 2, 2, 2, 2]


@pytest.mark.parametrize("graphs", ["off", "check"])
def test_dropout_is_the_same_with_graphs_and_without(graphs: str) -> None:
    def last_report(graphs: str) -> Tensor:
        """Return the report of the last of four updates with two batches in turn."""
        update = update_of(model_of(dropout=0.3), graphs=graphs)
        torch.manual_seed(5)
        *_, report = (make_update(update, seed=step % 2) for step in range(4))
        return report

    assert last_report(graphs).equal(last_report("on"))


# --- settings --------------------------------------------------------------------------------


def change_dropout(model: SparseNMTModel) -> None:
    model.update_dropout(0.2, 0.0)


def change_alpha_of_attention(model: SparseNMTModel) -> None:
    attentions(model)["context"][1].alpha = 1.4


def change_alpha_of_the_output(model: SparseNMTModel) -> None:
    model.generator.alpha = 1.4


@pytest.mark.parametrize(
    "change", [change_dropout, change_alpha_of_attention, change_alpha_of_the_output]
)
def test_other_alphas_or_dropout_have_a_graph_of_their_own(
    change: Callable[[SparseNMTModel], None],
) -> None:
    """Two updates before the change record one graph, and two updates after it another one."""
    model, update = transformer_updates()
    before = update.recorder.captured
    for _ in range(2):
        make_update(update)
    assert update.recorder.captured == before + 1
    change(model)
    for _ in range(2):
        make_update(update)
    assert update.recorder.captured == before + 2


def test_settings_that_change_in_each_update_have_no_graphs() -> None:
    """As while attention warms up: their graphs would never be replayed."""
    model, update = transformer_updates()
    before = update.recorder.captured
    for number in range(3):
        attentions(model)["context"][1].alpha = 1.2 + number / 10
        update.add(batch_of(0), SENTENCES)  # twice of one shape, as with accum_count 2
        make_update(update)
    assert update.recorder.captured == before
