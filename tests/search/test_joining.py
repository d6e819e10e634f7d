"""Streams of sentences, which join a search that is under way and leave it one by one."""

from typing import Any

import pytest
import torch

from onmt_entmax.search import Request, SearchConfig, Step, beam_search, stream_search
from onmt_entmax.search.beam_steps import BeamSearch
from onmt_entmax.search.certificate import SearchResult
from tests.search.networks import network, sentences, stepper, together
from tests.search.table_steppers import TableStepper
from tests.search.tables import Table, random_tables

CONFIG = SearchConfig(beam_size=3, max_length=6)
# A new request may start beside at most so many live prefixes: few, some, or any number.
rows_alive = pytest.mark.parametrize("rows", [1, 7, 1000])


def assert_equal_results(results: dict[int, SearchResult], alone: list[SearchResult]) -> None:
    """Compare the results of a stream, by the numbers of sentences, with those of each alone."""
    assert sorted(results) == list(range(len(alone)))
    # Equal results without hypotheses say little, so most sentences must have some.
    assert sum(bool(expected.hypotheses) for expected in alone) > len(alone) / 2
    for number, expected in enumerate(alone):
        tokens = [hypothesis.tokens for hypothesis in results[number].hypotheses]
        assert tokens == [hypothesis.tokens for hypothesis in expected.hypotheses]
        assert results[number].certificate.level == expected.certificate.level


COUNT, AT_ONCE = 60, 3  # sentences in all, and in each request


@rows_alive
def test_a_stream_of_tables_gives_what_each_gives_alone(rows: int) -> None:
    tables = [Table(seed, 1.5) for seed in range(COUNT)]
    starts = range(0, COUNT, AT_ONCE)
    requests = [Request(tables[start : start + AT_ONCE]) for start in starts]
    alone = [beam_search(TableStepper(), [table], CONFIG)[0] for table in tables]
    assert_equal_results(dict(stream_search(TableStepper(), iter(requests), CONFIG, rows)), alone)


@pytest.mark.parametrize(
    ("kind", "can_join"),
    [("input-feeding", True), ("lstm", True), ("gru", True), ("transformer", False)],
)
def test_sentences_join_decoders_whose_rows_may_be_at_different_positions(
    kind: str, can_join: bool
) -> None:
    """The rows of a Transformer share their position."""
    assert stepper(network(kind, alpha=1.5, seed=9)).can_join is can_join


@rows_alive
@pytest.mark.parametrize("kind", ["input-feeding", "lstm", "gru", "transformer"])
def test_a_stream_of_sentences_gives_what_each_gives_alone(kind: str, rows: int) -> None:
    model = stepper(network(kind, alpha=1.5, seed=9))
    singles = sentences(18)
    starts = range(0, len(singles), AT_ONCE)
    requests = [Request(together(singles[start : start + AT_ONCE])) for start in starts]
    alone = [beam_search(model, single, CONFIG)[0] for single in singles]
    assert_equal_results(dict(stream_search(model, iter(requests), CONFIG, rows)), alone)


def test_sentences_may_join_a_search_that_is_under_way() -> None:
    tables = random_tables(40)
    config = SearchConfig(beam_size=3, n_best=2, max_length=6)
    search = BeamSearch(TableStepper(), config)
    results: dict[int, SearchResult] = {}
    for table in tables:
        search.admit(Request([table]))
        results.update(search.advance())
    while len(search):
        results.update(search.advance())
    assert [results[i] for i in range(len(tables))] == beam_search(TableStepper(), tables, config)


class CountsPrefixes(TableStepper):
    """Notes the most prefixes that were alive at once."""

    most_alive = 0

    def step(self, state: Any, tokens: torch.Tensor) -> Step:
        self.most_alive = max(self.most_alive, len(state))
        return super().step(state, tokens)


@pytest.mark.parametrize("rows", [1, 6])
def test_a_stream_keeps_few_prefixes_alive(rows: int) -> None:
    """Prefixes of at most `rows` sentences are alive, and those of one more batch."""
    model = CountsPrefixes()
    tables = [Table(seed, 1.2) for seed in range(30)]
    requests = [Request(pair) for pair in zip(tables[::2], tables[1::2], strict=True)]
    assert len(dict(stream_search(model, requests, CONFIG, rows))) == len(tables)
    assert rows < model.most_alive <= CONFIG.beam_size * (rows + 2)
