"""Exact search against enumeration."""

import pytest

from onmt_entmax.search import (
    Budget,
    Penalties,
    SearchConfig,
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
    result = exact_search(model, [Table(0, 1.0)], SearchConfig(1, 0, 6), budget)
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


@pytest.mark.parametrize("n_best", [1, 3, 5])
@pytest.mark.parametrize("penalties", [Penalties(), Penalties("wu", 0.6)], ids=["plain", "wu"])
def test_exact_search_proves_no_less_than_the_beam(n_best: int, penalties: Penalties) -> None:
    partly_proven = 0
    for seed in range(100):
        model, table = TableStepper(6), Table(seed, 1.0, 6, 1.0, 1.0)
        config = SearchConfig(4, n_best, 6, "optimal", penalties=penalties)
        beam = beam_search(model, [table], config)[0]
        partly_proven += 0 < beam.certificate.proven < n_best
        whole = exact_search(model, [table], config, Budget(expansions=1_000_000))
        for more in (1, 5, 30):
            budget = Budget(expansions=beam.rows + more)
            exact = exact_search(model, [table], config, budget, start=beam)
            proven = exact.certificate.proven
            assert proven >= beam.certificate.proven
            best = [hypothesis.score for hypothesis in whole.hypotheses[:proven]]
            assert [h.score for h in exact.hypotheses[:proven]] == pytest.approx(best)
            if not penalties.any:
                assert exact.certificate.log_bound <= beam.certificate.log_bound
    assert partly_proven > 5 or n_best == 1
