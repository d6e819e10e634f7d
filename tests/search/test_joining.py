"""Searches of many sentences, which join and leave one by one."""

import pytest

from onmt_entmax.search import Request, SearchConfig, beam_search, stream_search
from onmt_entmax.search.certificate import SearchResult
from tests.search.networks import network, sentences, stepper, together
from tests.search.tables import Table, TableStepper

CONFIG = SearchConfig(beam_size=3, max_length=6)
rows_alive = pytest.mark.parametrize("rows", [1, 7, 1000])


def assert_equal_results(results: dict[int, SearchResult], alone: list[SearchResult]) -> None:
    """Compare the results of a stream, by the numbers of sentences, with those of each alone."""
    assert sorted(results) == list(range(len(alone)))
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


@rows_alive
@pytest.mark.parametrize(
    ("kind", "can_join"),
    [("input-feeding", True), ("lstm", True), ("gru", True), ("transformer", False)],
)
def test_a_stream_of_sentences_gives_what_each_gives_alone(
    kind: str, can_join: bool, rows: int
) -> None:
    model = stepper(network(kind, alpha=1.5, seed=9))
    singles = sentences(18)
    assert model.can_join is can_join
    starts = range(0, len(singles), AT_ONCE)
    requests = [Request(together(singles[start : start + AT_ONCE])) for start in starts]
    alone = [beam_search(model, single, CONFIG)[0] for single in singles]
    assert_equal_results(dict(stream_search(model, iter(requests), CONFIG, rows)), alone)
