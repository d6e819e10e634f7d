"""Attention whose scores are not products of a query and projected keys.

A search cannot prepare the keys of such attention, so it runs the module, as training does.
"""

from typing import Any

import pytest
import torch

from onmt_entmax.data.batch import Batch, Example, make_batch
from onmt_entmax.model import SparseNMTModel
from onmt_entmax.nn.attention import EntmaxGlobalAttention
from onmt_entmax.search import ModelStepper
from onmt_entmax.search.recurrent_decoding import RecurrentState
from onmt_entmax.sparse import log_entmax
from tests.recurrence.networks import Distance
from tests.search.networks import VOCABULARIES, network


def network_without_products() -> SparseNMTModel:
    """Return an input-feeding network whose attention scores are distances."""
    model = network("input-feeding", alpha=1.5, seed=3)
    model.decoder.attn = Distance(8).double()
    return model


def log_probs_of_search(model: SparseNMTModel, batch: Batch, target: list[int]) -> torch.Tensor:
    """Return log-probabilities ``(len(target), vocabulary)``, step by step as a search computes."""
    stepper = ModelStepper(model, VOCABULARIES.target)
    state = stepper.start(batch)
    rows = []
    for token in [stepper.bos, *target[:-1]]:
        step = stepper.step(state, torch.tensor([token]))
        rows.append(step.log_probs[0])
        state = step.state
    return torch.stack(rows)


@torch.inference_mode()
def test_steps_of_scores_that_are_not_products_are_those_of_training() -> None:
    """Neither training nor decoding may take the products of `dot`, which the module inherits."""
    model = network_without_products()
    batch = make_batch([Example([2, 3, 4], [5, 4, 4], 0)], VOCABULARIES)
    hidden, target = model.hidden_states(batch)
    expected = log_entmax(model.generator.scores(hidden), 1.5)
    log_probs = log_probs_of_search(model, batch, target.tolist())
    torch.testing.assert_close(log_probs.exp(), expected.exp())


@pytest.mark.parametrize("has_products", [True, False])
def test_steps_are_prepared_if_scores_are_products(has_products: bool) -> None:
    model = (
        network("input-feeding", alpha=1.5, seed=3) if has_products else network_without_products()
    )
    batch = make_batch([Example([2, 3, 4], None, 0)], VOCABULARIES)
    with torch.inference_mode():
        state = ModelStepper(model, VOCABULARIES.target).start(batch)
    assert isinstance(state, RecurrentState) is has_products


class AnotherForwardPass(EntmaxGlobalAttention):
    """Attention with a forward pass of its own, which need not compute products."""

    def forward(self, *arguments: Any) -> Any:
        return super().forward(*arguments)


def with_another_score() -> EntmaxGlobalAttention:
    """Return attention whose scores were replaced after it was made."""
    attention = EntmaxGlobalAttention(8, "dot")
    attention.score = lambda h_t, h_s: h_t @ h_s.mT  # type: ignore[method-assign]
    return attention


@pytest.mark.parametrize("name", ["dot", "general"])
def test_scores_of_dot_and_general_are_products(name: str) -> None:
    assert EntmaxGlobalAttention(8, name).can_project


@pytest.mark.parametrize(
    "attention",
    [EntmaxGlobalAttention(8, "mlp"), Distance(8), AnotherForwardPass(8), with_another_score()],
    ids=["mlp", "other scores", "another forward pass", "replaced scores"],
)
def test_other_scores_are_not_products(attention: EntmaxGlobalAttention) -> None:
    assert not attention.can_project
    with pytest.raises(ValueError, match="are no products"):
        attention.project(torch.ones(1, 3, 8))
