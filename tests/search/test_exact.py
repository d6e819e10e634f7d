"""Exact search: its budget, its limits, and what it proves beyond a beam search."""

from typing import NamedTuple

import pytest

from onmt_entmax.search import (
    Budget,
    Penalties,
    SearchConfig,
    SearchResult,
    SearchTask,
    beam_search,
    exact_search,
    is_settled,
)
from tests.search.tables import EOS, Fixed, Table, TableStepper

THREE_OUTPUTS = Fixed({(): {EOS: 0.6, 2: 0.3, 3: 0.1}})


@pytest.mark.parametrize(("n_best", "settled"), [(1, True), (2, False), (0, False)])
def test_what_a_beam_of_one_settles(n_best: int, settled: bool) -> None:
    (result,) = beam_search(TableStepper(7), [THREE_OUTPUTS], SearchConfig(1, 0))
    assert (result.certificate.level, result.certificate.proven) == ("optimal", 1)
    assert is_settled(result, n_best) is settled


def test_a_whole_support_settles_a_list_of_all() -> None:
    (result,) = beam_search(TableStepper(7), [THREE_OUTPUTS], SearchConfig(2, 0))
    assert is_settled(result, 0)


@pytest.mark.parametrize("expansions", [1, 2, 7])
def test_no_more_is_computed_than_the_budget_has(expansions: int) -> None:
    model, budget = TableStepper(), Budget(expansions, rows=1)
    config = SearchConfig(beam_size=1, n_best=0, max_length=6)
    result = exact_search(model, [Table(0, 1.0)], config, budget)
    assert result.rows == model.rows == expansions


def test_a_budget_has_at_least_one_expansion() -> None:
    with pytest.raises(ValueError, match="expansions: must be"):
        Budget(expansions=0)


def test_a_list_is_by_probability() -> None:
    config = SearchConfig(n_best=0, penalties=Penalties("avg"))
    with pytest.raises(ValueError, match="listed by probability"):
        exact_search(TableStepper(), [Table(0, 1.0)], config)


def test_an_enumeration_lists_all() -> None:
    with pytest.raises(ValueError, match="lists all: n_best must be 0"):
        SearchTask(SearchConfig(n_best=1), method="enumerate")


class Compared(NamedTuple):
    """A beam search of a random table, and exact searches after it."""

    beam: SearchResult
    whole: SearchResult
    """Of a budget that suffices."""
    short: list[SearchResult]
    """Of budgets that end soon after the beam search."""


@pytest.mark.parametrize("n_best", [1, 3, 5], scope="class")
@pytest.mark.parametrize(
    "penalties",
    [pytest.param(Penalties(), id="plain"), pytest.param(Penalties("wu", alpha=0.6), id="wu")],
    scope="class",
)
class TestExactSearchAfterABeam:
    @pytest.fixture(scope="class")
    def compared(self, n_best: int, penalties: Penalties) -> list[Compared]:
        searches = []
        stepper = TableStepper(6)
        config = SearchConfig(
            beam_size=4, n_best=n_best, max_length=6, stop="optimal", penalties=penalties
        )
        for seed in range(100):
            tables = [Table(seed, alpha=1.0, vocabulary_size=6, spread=1.0, end=1.0)]
            (beam,) = beam_search(stepper, tables, config)
            budgets = [Budget(expansions=beam.rows + more) for more in (1, 5, 30)]
            short = [exact_search(stepper, tables, config, b, start=beam) for b in budgets]
            whole = exact_search(stepper, tables, config, Budget(expansions=1_000_000))
            searches.append(Compared(beam, whole, short))
        return searches

    def test_proves_no_less(self, compared: list[Compared]) -> None:
        for searches in compared:
            least = min(exact.certificate.proven for exact in searches.short)
            assert least >= searches.beam.certificate.proven

    def test_proves_the_best_scores(self, compared: list[Compared]) -> None:
        for searches in compared:
            best = [hypothesis.score for hypothesis in searches.whole.hypotheses]
            for exact in searches.short:
                proven = exact.certificate.proven
                scores = [hypothesis.score for hypothesis in exact.hypotheses[:proven]]
                assert scores == pytest.approx(best[:proven])

    def test_has_no_larger_bound(self, compared: list[Compared], penalties: Penalties) -> None:
        if penalties.any:
            pytest.skip("the beam's bound does not hold for hypotheses that another score ranks")
        for searches in compared:
            largest = max(exact.certificate.log_bound for exact in searches.short)
            assert largest <= searches.beam.certificate.log_bound

    def test_has_something_left_to_prove(self, compared: list[Compared], n_best: int) -> None:
        if n_best == 1:
            pytest.skip("one rank is proven or not")
        proven = [searches.beam.certificate.proven for searches in compared]
        assert sum(0 < ranks < n_best for ranks in proven) > 5
