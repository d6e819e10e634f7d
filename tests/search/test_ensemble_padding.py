"""Ensembles in which one model has dropped columns of padding that another still has.

When the longest sentences leave a search, an input-feeding LSTM drops the source columns that are
now padding in every row. All other decoders keep them. The ensemble averages the columns that all
of its models have.
"""

from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor

from onmt_entmax.search import (
    EnsembleStepper,
    Hypothesis,
    ModelStepper,
    SearchConfig,
    beam_search,
)
from onmt_entmax.search.stepper import Step
from tests.search.networks import VOCABULARIES, network, sentences, together
from tests.search.table_steppers import TableStepper
from tests.search.tables import BOS, Table

# --- one step --------------------------------------------------------------------------------


class FixedAttention(TableStepper):
    """A model of one sentence that always has the same attention, `(1, source length)`."""

    def __init__(self, *weights: float) -> None:
        super().__init__()
        self.weights = torch.tensor([weights])

    def step(self, state: Any, tokens: Tensor) -> Step:
        step = super().step(state, tokens)
        return Step(step.distribution, self.weights, step.state)


@pytest.mark.parametrize("order", [1, -1], ids=["narrow first", "wide first"])
def test_attention_is_averaged_over_the_columns_that_all_models_have(order: int) -> None:
    narrow, wide = FixedAttention(0.2, 0.8), FixedAttention(0.6, 0.4, 0.0, 0.0)
    ensemble = EnsembleStepper([narrow, wide][::order])
    step = ensemble.step(ensemble.start([Table(1, alpha=1.5)]), torch.tensor([BOS]))
    torch.testing.assert_close(step.attention, torch.tensor([[0.4, 0.6]]))


# --- a search --------------------------------------------------------------------------------


class MeasuredModel(ModelStepper):
    """A model that records how many source columns its attention has.

    Args:
        kind: kind of its network, one of `networks.DECODERS`.

    Attributes:
        widths: the number of columns at each step of all searches.
    """

    def __init__(self, kind: str) -> None:
        model = network(kind, alpha=1.0, seed=3)  # softmax, with which any prefix is possible
        super().__init__(model, VOCABULARIES.target, attention=True)
        self.widths: list[int] = []

    def step(self, state: Any, tokens: Tensor) -> Step:
        step = super().step(state, tokens)
        self.widths.append(step.attention.size(1))
        return step


# Sources of 5, 4, 4, 4, 3 and 1 tokens. The fifth must begin with five x, and so leaves last.
SENTENCES = sentences(6)
PREFIXES = [[], [], [], [], VOCABULARIES.target.encode(["x"] * 5), []]


class Searches(NamedTuple):
    """Searches of `SENTENCES` with an ensemble of two models.

    Attributes:
        in_batch: the hypotheses of one search of all sentences, in their order.
        alone: the hypotheses of a search for each sentence, in the same order.
        widths: for each of the models, the columns of its attention at each step of the batch.
    """

    in_batch: list[Hypothesis]
    alone: list[Hypothesis]
    widths: list[list[int]]


@pytest.fixture(scope="module", params=["gru", "transformer", "learned"])
def searches(request: pytest.FixtureRequest) -> Searches:
    """The first model is an input-feeding LSTM, and the second keeps columns of padding."""
    models = [MeasuredModel("input-feeding"), MeasuredModel(request.param)]
    ensemble = EnsembleStepper(models)
    config = SearchConfig(beam_size=4, n_best=2, max_length=6)
    results = beam_search(ensemble, together(SENTENCES), config, PREFIXES)
    widths = [[*model.widths] for model in models]
    alone = [
        result
        for sentence, prefix in zip(SENTENCES, PREFIXES, strict=True)
        for result in beam_search(ensemble, sentence, config, [prefix])
    ]
    return Searches(
        [hypothesis for result in results for hypothesis in result.hypotheses],
        [hypothesis for result in alone for hypothesis in result.hypotheses],
        widths,
    )


def test_models_have_different_widths_once_long_sentences_have_left(searches: Searches) -> None:
    """The two tests below rest on this."""
    assert [widths[-1] for widths in searches.widths] == [3, 5]


def test_a_batch_gives_the_outputs_of_each_sentence_alone(searches: Searches) -> None:
    outputs = [hypothesis.tokens for hypothesis in searches.in_batch]
    assert len(outputs) == 2 * len(SENTENCES)
    assert outputs == [hypothesis.tokens for hypothesis in searches.alone]


def test_a_batch_gives_the_attention_of_each_sentence_alone(searches: Searches) -> None:
    for in_batch, alone in zip(searches.in_batch, searches.alone, strict=True):
        torch.testing.assert_close(in_batch.attention, alone.attention)
