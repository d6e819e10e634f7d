"""The attention of hypotheses: a row for each step, and a column for each source position."""

from typing import NamedTuple

import pytest
import torch

from onmt_entmax.search import Hypothesis, SearchConfig, beam_search
from tests.search.networks import network, sentences, stepper, together
from tests.search.table_steppers import TableStepper, table_attention
from tests.search.tables import Table


class SourceAndHypothesis(NamedTuple):
    """The length of a source, and a hypothesis of it."""

    length: int
    hypothesis: Hypothesis


@pytest.fixture(scope="module", params=["gru", "transformer", "learned"])
def searched(request: pytest.FixtureRequest) -> list[SourceAndHypothesis]:
    """The hypotheses of a batch, whose sources have different lengths."""
    model = stepper(network(request.param, alpha=1.5, seed=6), attention=True)
    batches = sentences(5)
    config = SearchConfig(beam_size=3, n_best=2, max_length=8)
    results = beam_search(model, together(batches), config)
    searched = [
        SourceAndHypothesis(int(batch.source_lengths[0]), hypothesis)
        for batch, result in zip(batches, results, strict=True)
        for hypothesis in result.hypotheses
    ]
    assert len({length for length, _ in searched}) > 1
    return searched


def test_attention_has_a_row_for_every_step(searched: list[SourceAndHypothesis]) -> None:
    """The last row is that of the end symbol."""
    for _, hypothesis in searched:
        assert hypothesis.attention.shape[0] == len(hypothesis.tokens) + 1


def test_attention_has_no_column_of_padding(searched: list[SourceAndHypothesis]) -> None:
    for length, hypothesis in searched:
        assert hypothesis.attention.shape[1] == length


def test_attention_sums_to_one(searched: list[SourceAndHypothesis]) -> None:
    for _, hypothesis in searched:
        sums = hypothesis.attention.double().sum(1)
        torch.testing.assert_close(sums, torch.ones_like(sums), rtol=0, atol=1e-5)


def test_attention_belongs_to_the_hypothesis() -> None:
    """The weights of a table tell prefixes apart: those of a hypothesis are of its own prefixes."""
    tables = [Table(seed, 1.5) for seed in range(20)]
    config = SearchConfig(beam_size=3, n_best=0, max_length=5)
    results = beam_search(TableStepper(attention=True), tables, config)
    hypotheses = [hypothesis for result in results for hypothesis in result.hypotheses]
    assert len(hypotheses) > len(tables)
    for hypothesis in hypotheses:
        prefixes = [hypothesis.tokens[:i] for i in range(len(hypothesis.tokens) + 1)]
        expected = [[table_attention(prefix)] for prefix in prefixes]
        assert hypothesis.attention is not None
        assert hypothesis.attention.tolist() == expected
