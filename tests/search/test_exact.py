"""Exact search: its budget, its limits, and what it proves beyond a beam search."""

from typing import NamedTuple

import pytest

from onmt_entmax.search import (
    Budget,
    Penalties,
    Request,
    SearchConfig,
    SearchResult,
    SearchTask,
    beam_search,
    exact_search,
    is_settled,
)
from onmt_entmax.search.arrays import Floats, Ints
from onmt_entmax.search.frontier import Frontier
from onmt_entmax.search.prefixes import Continuations
from tests.search.table_steppers import TableStepper
from tests.search.tables import EOS, Fixed, Table

# --- what a beam search leaves to do ---

THREE_OUTPUTS = Fixed({(): {EOS: 0.6, 2: 0.3, 3: 0.1}})


@pytest.mark.parametrize(
    ("n_best", "settled"),
    [
        pytest.param(1, True, id="the best"),
        pytest.param(2, False, id="the two best"),
        pytest.param(0, False, id="all"),
    ],
)
def test_a_beam_of_one_settles_the_best_output_alone(n_best: int, settled: bool) -> None:
    (result,) = beam_search(TableStepper(7), [THREE_OUTPUTS], SearchConfig(beam_size=1, n_best=0))
    assert (result.certificate.level, result.certificate.proven) == ("optimal", 1)
    assert is_settled(result, n_best) is settled


def test_a_whole_support_settles_a_list_of_all() -> None:
    (result,) = beam_search(TableStepper(7), [THREE_OUTPUTS], SearchConfig(beam_size=2, n_best=0))
    assert is_settled(result, 0)


# --- budgets and requests ---


@pytest.mark.parametrize("expansions", [1, 2, 7])
def test_no_more_is_computed_than_the_budget_has(expansions: int) -> None:
    model = TableStepper()
    budget = Budget(expansions, rows=1)
    config = SearchConfig(beam_size=1, n_best=0, max_length=6)
    result = exact_search(model, Request([Table(0, 1.0)]), config, budget)
    assert result.rows == model.rows == expansions


def test_a_budget_without_an_expansion_is_refused() -> None:
    with pytest.raises(ValueError, match="expansions: must be"):
        Budget(expansions=0)


def test_a_list_under_penalties_is_refused() -> None:
    config = SearchConfig(n_best=0, penalties=Penalties("avg"))
    with pytest.raises(ValueError, match="listed by probability"):
        exact_search(TableStepper(), Request([Table(0, 1.0)]), config)


def test_an_enumeration_of_a_single_output_is_refused() -> None:
    with pytest.raises(ValueError, match="lists all: n_best must be 0"):
        SearchTask(SearchConfig(n_best=1), method="enumerate")


# --- memory ---


def test_steps_that_wait_keep_only_candidates_that_may_win(monkeypatch: pytest.MonkeyPatch) -> None:
    """A candidate that is no more probable than the beam's output cannot win.

    Most next tokens of a large vocabulary are such candidates, and would fill the memory.
    """
    config = SearchConfig(beam_size=1, max_length=6)
    kept: list[float] = []  # log-probabilities of all candidates of the steps that wait
    push = Frontier.push

    def recorded_push(
        frontier: Frontier, continuations: Continuations, positions: Ints
    ) -> list[Floats]:
        kept.extend(continuations.log_probs.tolist())
        return push(frontier, continuations, positions)

    monkeypatch.setattr(Frontier, "push", recorded_push)
    waited = 0
    for seed in range(30):
        table = Table(seed, alpha=1.0, vocabulary_size=6, spread=1.0, end=1.0)
        (beam,) = beam_search(TableStepper(6), [table], config)
        kept.clear()
        exact_search(TableStepper(6), Request([table]), config, beam_result=beam)
        if beam.hypotheses and kept:
            assert min(kept) > beam.hypotheses[0].log_prob
            waited += 1
    assert waited > 5


# --- against the beam search before it ---


class SearchesOfTable(NamedTuple):
    """A beam search of a random table, and exact searches after it."""

    beam: SearchResult
    whole: SearchResult
    """The exact search with a budget that suffices."""
    short: list[SearchResult]
    """Exact searches whose budgets end soon after the beam search."""


class SearchesOfAll(NamedTuple):
    """The same searches of many tables."""

    n_best: int
    tables: list[SearchesOfTable]


PLAIN = [pytest.param((n_best, Penalties()), id=f"plain-{n_best}") for n_best in (1, 3, 5)]
PENALISED = [
    pytest.param((n_best, Penalties("wu", alpha=0.6)), id=f"wu-{n_best}") for n_best in (1, 3, 5)
]


@pytest.fixture(scope="module", params=[*PLAIN, *PENALISED])
def searches(request: pytest.FixtureRequest) -> SearchesOfAll:
    """Searches of a hundred random tables with softmax."""
    n_best, penalties = request.param
    of_tables = []
    stepper = TableStepper(6)
    config = SearchConfig(
        beam_size=4, n_best=n_best, max_length=6, stop="optimal", penalties=penalties
    )
    for seed in range(100):
        tables = [Table(seed, alpha=1.0, vocabulary_size=6, spread=1.0, end=1.0)]
        (beam,) = beam_search(stepper, tables, config)
        budgets = [Budget(expansions=beam.rows + more) for more in (1, 5, 30)]
        short = [
            exact_search(stepper, Request(tables), config, budget, beam_result=beam)
            for budget in budgets
        ]
        whole = exact_search(stepper, Request(tables), config, Budget(expansions=1_000_000))
        of_tables.append(SearchesOfTable(beam, whole, short))
    return SearchesOfAll(n_best, of_tables)


def test_exact_search_proves_no_less_than_the_beam(searches: SearchesOfAll) -> None:
    for table in searches.tables:
        least = min(exact.certificate.proven for exact in table.short)
        assert least >= table.beam.certificate.proven


def test_exact_search_proves_the_best_scores(searches: SearchesOfAll) -> None:
    for table in searches.tables:
        best = [hypothesis.score for hypothesis in table.whole.hypotheses]
        for exact in table.short:
            proven = exact.certificate.proven
            scores = [hypothesis.score for hypothesis in exact.hypotheses[:proven]]
            assert scores == pytest.approx(best[:proven])


@pytest.mark.parametrize("searches", PLAIN, indirect=True)
def test_exact_search_has_no_larger_bound_than_the_beam(searches: SearchesOfAll) -> None:
    """Under penalties, the beam's bound does not hold for hypotheses that another score ranks."""
    for table in searches.tables:
        largest = max(exact.certificate.log_bound for exact in table.short)
        assert largest <= table.beam.certificate.log_bound


@pytest.mark.parametrize("searches", [*PLAIN[1:], *PENALISED[1:]], indirect=True)
def test_the_beam_leaves_ranks_to_prove(searches: SearchesOfAll) -> None:
    """There are three or five ranks. A single one would be proven or not."""
    proven = [table.beam.certificate.proven for table in searches.tables]
    assert sum(0 < ranks < searches.n_best for ranks in proven) > 5
