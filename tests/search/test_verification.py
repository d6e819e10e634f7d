"""`verify`: the claims of a result are computed again in float64, and agree or not.

A table is already in float64: tests that contradict a result verify it with another table.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from onmt_entmax.search import (
    Budget,
    Constraints,
    EnsembleStepper,
    Hypothesis,
    Penalties,
    Request,
    SearchConfig,
    SearchResult,
    beam_search,
    exact_search,
    verify,
)
from tests.search.networks import network, sentences, stepper, together
from tests.search.table_steppers import TableStepper
from tests.search.tables import EOS, Fixed, Table

ONE_PREFIX = SearchConfig(beam_size=1)
TWO_OUTPUTS = Fixed({(): {EOS: 0.6, 2: 0.4}})
THREE_OUTPUTS = Fixed({(): {EOS: 0.6, 2: 0.3, 3: 0.1}})


def claiming(result: SearchResult, hypotheses: Sequence[Hypothesis]) -> SearchResult:
    """Return a result that claims to have proven these hypotheses, the best first, and no more."""
    certificate = replace(result.certificate, level="optimal", proven=len(hypotheses))
    return replace(result, hypotheses=tuple(hypotheses), certificate=certificate)


# --- results that are confirmed ---


@pytest.mark.parametrize("kind", ["input-feeding", "gru", "transformer"])
def test_float64_confirms_what_float32_certified(kind: str) -> None:
    config = SearchConfig(beam_size=4, n_best=2, max_length=8)
    levels = set()
    for seed in range(4):
        model = stepper(network(kind, alpha=1.5, seed=seed, double=False))
        batches = sentences(5, seed)
        double = model.double()
        results = beam_search(model, together(batches), config)
        for batch, result in zip(batches, results, strict=True):
            levels.add(result.certificate.level)
            assert verify(double, Request(batch), result, config).agrees
    assert levels >= {"optimal", "exhaustive"}


@pytest.mark.parametrize("alpha", [1.0, 1.5])
def test_the_ranks_of_an_exact_search_are_verified_by_one(alpha: float) -> None:
    config = SearchConfig(beam_size=1, n_best=3, max_length=5)
    proven = []
    for seed in range(15):
        tables = [Table(seed, alpha, end=1.0)]
        result = exact_search(TableStepper(), Request(tables), config)
        proven.append(result.certificate.proven)
        assert verify(TableStepper(), Request(tables), result, config).agrees
    assert proven.count(3) > 10


def test_the_list_of_an_exact_search_is_verified_by_one() -> None:
    config = SearchConfig(beam_size=2, n_best=0, max_length=8)
    for seed in range(30):
        tables = [Table(seed, 1.5, end=1.0)]
        result = exact_search(TableStepper(), Request(tables), config, mass=0.9)
        assert verify(TableStepper(), Request(tables), result, config).agrees


# --- results that are contradicted ---


def test_more_sequences_than_certified_contradict_a_certificate() -> None:
    config = SearchConfig(beam_size=5, n_best=2)
    (claimed,) = beam_search(TableStepper(7), [TWO_OUTPUTS], config)
    assert verify(TableStepper(7), Request([THREE_OUTPUTS]), claimed, config).agrees is False


def test_fewer_sequences_than_certified_contradict_a_certificate() -> None:
    config = SearchConfig(beam_size=5)
    (claimed,) = beam_search(TableStepper(7), [THREE_OUTPUTS], config)
    assert (claimed.certificate.level, claimed.finished) == ("exhaustive", 3)
    assert verify(TableStepper(7), Request([TWO_OUTPUTS]), claimed, config).agrees is False


def test_an_exhaustive_result_is_contradicted_by_another_sequence_within_a_small_budget() -> None:
    other = Fixed({(): {EOS: 0.6, 2: 0.25, 3: 0.15}, (2,): {EOS: 0.5, 4: 0.5}})
    (claimed,) = beam_search(TableStepper(7), [TWO_OUTPUTS], ONE_PREFIX)
    assert claimed.certificate.level == "exhaustive"
    short = verify(
        TableStepper(7), Request([other]), claimed, ONE_PREFIX, budget=Budget(expansions=1)
    )
    assert short.agrees is False


def test_an_output_of_probability_0_is_contradicted_within_a_small_budget() -> None:
    (claimed,) = beam_search(TableStepper(7), [Fixed({(): {2: 1.0}})], ONE_PREFIX)
    other = Fixed({(): {4: 0.5, 5: 0.3, 6: 0.2}, (4,): {4: 0.3, 5: 0.3, 6: 0.4}})
    short = verify(
        TableStepper(7), Request([other]), claimed, ONE_PREFIX, budget=Budget(expansions=1)
    )
    assert short.agrees is False


def test_a_proof_is_contradicted_if_the_length_limit_cuts_better_sequences() -> None:
    """All of the 0.6 of (2,) goes to (2, 2), which is cut, so that (3,) with 0.4 is not proven."""
    config = SearchConfig(beam_size=2, max_length=1)
    tables = [Fixed({(): {2: 0.6, 3: 0.4}, (2,): {2: 1.0}})]
    result = exact_search(TableStepper(7), Request(tables), config)
    assert (result.hypotheses[0].tokens, result.certificate.level) == ((3,), "none")
    claimed = claiming(result, result.hypotheses)
    assert verify(TableStepper(7), Request(tables), claimed, config).agrees is False


def test_a_result_without_hypotheses_claims_nothing() -> None:
    """The length limit cuts the only sequence of the model."""
    config = SearchConfig(beam_size=2, max_length=1)
    tables = [Fixed({(): {2: 1.0}, (2,): {2: 1.0}})]
    result = exact_search(TableStepper(7), Request(tables), config)
    assert not result.hypotheses
    claimed = claiming(result, [])
    assert verify(TableStepper(7), Request(tables), claimed, config).agrees is True


def test_an_optimal_result_is_contradicted_by_a_better_score() -> None:
    """The score of (2,) is above that of the empty output, which is claimed to be the best."""
    model = Fixed({(): {EOS: 0.5, 2: 0.3, 3: 0.1, 4: 0.1}, (2,): {EOS: 1.0}})
    config = SearchConfig(beam_size=1, n_best=2, max_length=20, penalties=Penalties("avg"))
    (result,) = beam_search(TableStepper(7), [model], config)
    _, empty = result.hypotheses
    claimed = claiming(result, [empty])
    short = verify(TableStepper(7), Request([model]), claimed, config, budget=Budget(expansions=1))
    assert short.agrees is False


REPEATING = Fixed({(): {2: 0.8, 3: 0.1, EOS: 0.1}, (2,): {2: 0.9, EOS: 0.1}, (2, 2): {EOS: 1.0}})


@pytest.mark.parametrize(
    ("asked", "constraints"),
    [
        pytest.param({"banned": [{2}]}, Constraints(), id="a token banned in its sentence"),
        pytest.param({}, Constraints(banned=frozenset({2})), id="a token banned in all"),
        pytest.param({}, Constraints(block_ngram_repeat=1), id="a repeated token"),
        pytest.param({}, Constraints(min_length=3), id="an end before the minimum length"),
        pytest.param({"prefixes": [[3]]}, Constraints(), id="without its forced prefix"),
    ],
)
def test_an_output_that_is_not_allowed_is_contradicted_though_it_is_the_most_probable(
    asked: dict[str, Any], constraints: Constraints
) -> None:
    (result,) = beam_search(TableStepper(7), [REPEATING], SearchConfig(beam_size=5))
    assert result.hypotheses[0].tokens == (2, 2)
    claimed = claiming(result, result.hypotheses)
    config = SearchConfig(beam_size=5, constraints=constraints)
    request = Request([REPEATING], **asked)
    assert verify(TableStepper(7), request, claimed, config).agrees is False


@pytest.mark.parametrize(
    ("end", "penalties"),
    [
        pytest.param(0.5, Penalties(), id="though it ties with the best allowed one"),
        # By averages, the empty output has log(0.6) / 2 = -0.26, and (2, 3, 4, 5), which is too
        # long, log(0.4) / 6 = -0.15. An output of one token would have log(0.4) / 3 = -0.31.
        pytest.param(0.6, Penalties("avg"), id="though it scores more than any allowed one"),
    ],
)
def test_an_output_beyond_the_length_limit_is_contradicted(
    end: float, penalties: Penalties
) -> None:
    steps = {(): {EOS: end, 2: 1 - end}, (2,): {3: 1.0}, (2, 3): {4: 1.0}, (2, 3, 4): {5: 1.0}}
    config = SearchConfig(n_best=2, max_length=4, penalties=penalties)
    (result,) = beam_search(TableStepper(7), [Fixed(steps)], config)
    (long,) = (h for h in result.hypotheses if h.tokens == (2, 3, 4, 5))
    shorter = replace(config, n_best=1, max_length=1)
    verified = verify(TableStepper(7), Request([Fixed(steps)]), claiming(result, [long]), shorter)
    assert verified.agrees is False


# --- budgets that end early ---

TABLES = [Table(seed, 1.0, 6, spread=1.0, end=1.0) for seed in range(30)]


def agreements(results: list[SearchResult], budget: Budget) -> list[bool | None]:
    """Return whether each result of `TABLES` agrees; None: the budget ended before its proof."""
    return [
        verify(TableStepper(6), Request([table]), result, ONE_PREFIX, budget=budget).agrees
        for table, result in zip(TABLES, results, strict=True)
    ]


@pytest.fixture(scope="module")
def exact_results() -> list[SearchResult]:
    """Results of `TABLES`, whose best output is proven."""
    return [exact_search(TableStepper(6), Request([table]), ONE_PREFIX) for table in TABLES]


def test_a_budget_of_one_prefix_leaves_open_what_a_beam_search_does_not_prove(
    exact_results: list[SearchResult],
) -> None:
    by_beam = [beam_search(TableStepper(6), [table], ONE_PREFIX)[0] for table in TABLES]
    expected = [True if result.certificate.proven == 1 else None for result in by_beam]
    assert agreements(exact_results, Budget(expansions=1)) == expected
    assert expected.count(None) > 3


def test_a_budget_of_one_state_contradicts_nothing(exact_results: list[SearchResult]) -> None:
    agreeing = agreements(exact_results, Budget(states=1, rows=1))
    assert False not in agreeing
    assert agreeing.count(None) > 3


# --- models without float64 ---


def test_an_ensemble_with_a_mean_encoder_has_no_float64() -> None:
    model = EnsembleStepper(
        [stepper(network(kind, alpha=1.5, seed=0)) for kind in ("lstm", "mean")]
    )
    with pytest.raises(ValueError, match="mean encoder"):
        model.double()
