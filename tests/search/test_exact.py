"""Exact search against enumeration."""

import math
import random
from itertools import product

import pytest

from onmt_entmax.search import (
    Budget,
    Constraints,
    Penalties,
    SearchConfig,
    beam_search,
    exact_search,
    is_settled,
)
from tests.search.checks import check
from tests.search.enumeration import enumerate_support
from tests.search.networks import DECODERS, network, sentences, stepper
from tests.search.tables import BOS, EOS, Fixed, Table, TableStepper


@pytest.mark.parametrize("part", range(4))
def test_exact_search_proves_what_enumeration_finds(part: int) -> None:
    searched = 0
    for seed in range(part * 100, part * 100 + 100):
        draw = random.Random(seed)
        table = Table(seed, draw.choice([1.0, 1.2, 1.5, 2.0]), draw.choice([4, 5, 6]), end=0.8)
        model = TableStepper(table.vocabulary_size)
        support = enumerate_support(model, [table], 4, 1000)
        config = SearchConfig(draw.randint(1, 3), draw.choice([1, 2, 5]), 4)
        budget = Budget(rows=draw.choice([1, 3, 64]))
        result = exact_search(model, [table], config, budget)
        check(result, support, config)
        searched += result.rows > beam_search(model, [table], config)[0].rows
        unseen = max(support.prefixes.values(), default=-math.inf)
        provable = sum(p >= unseen for p in support.strings.values())
        assert result.certificate.proven >= min(config.n_best, provable)
    assert searched > 10, "in some sentences the beam must not suffice"


def test_probability_excluded_by_the_beam_search_is_kept() -> None:
    """Sequences that start with (2, bos) are excluded and have 0.54, more than the best found.

    The beam search has met them; the exact search ends before it does.
    """
    tail = {BOS: 0.9, 3: 0.05, 4: 0.05}
    model = Fixed(
        {
            (): {2: 0.6, EOS: 0.4},
            (2,): tail,
            (2, 3): {EOS: 0.5, 5: 0.5},
            (2, 3, 5): {EOS: 1.0},
            (2, 4): {EOS: 1.0},
        }
    )
    result = exact_search(TableStepper(7), [model], SearchConfig(1, 2), Budget(expansions=1))
    certificate = result.certificate
    assert max(certificate.log_excluded_bound, certificate.log_bound) >= math.log(0.54) - 1e-9
    assert certificate.excluded == pytest.approx(0.54)


def test_small_budgets_claim_no_more_than_there_is() -> None:
    for seed in range(150):
        draw = random.Random(seed)
        table = Table(seed, draw.choice([1.0, 1.5, 2.0]), 5, end=0.8)
        model = TableStepper(5)
        support = enumerate_support(model, [table], 4, 1000)
        config = SearchConfig(draw.randint(1, 3), draw.choice([1, 2, 5]), 4)
        budget = Budget(expansions=draw.randint(1, 8), rows=draw.choice([1, 3, 64]))
        check(exact_search(model, [table], config, budget), support, config)


def test_an_argmax_that_the_beam_misses_is_found() -> None:
    missed = 0
    for seed in range(150):
        table = Table(seed, 1.0, 6, 1.0, 1.0)
        beam = beam_search(TableStepper(6), [table], SearchConfig(1))[0]
        exact = exact_search(TableStepper(6), [table], SearchConfig(1))
        assert exact.certificate.level == "optimal"
        assert exact.hypotheses[0].log_prob >= beam.hypotheses[0].log_prob
        if exact.hypotheses[0].tokens != beam.hypotheses[0].tokens:
            missed += 1
            assert beam.certificate.level == "none"
    assert missed > 5


@pytest.mark.parametrize(
    "penalties", [Penalties("wu", 0.8), Penalties("avg", 0, "summary", 0.05)], ids=str
)
def test_exact_search_ranks_by_score(penalties: Penalties) -> None:
    for seed in range(40):
        model, table = TableStepper(attention=True), Table(seed, 1.5 if seed % 2 else 1.0)
        config = SearchConfig(2, 2, 4, penalties=penalties)
        whole = beam_search(model, [table], SearchConfig(1000, 0, 4, penalties=penalties))[0]
        result = exact_search(model, [table], config)
        found = [h.score for h in result.hypotheses[: result.certificate.proven]]
        assert found == pytest.approx([h.score for h in whole.hypotheses[: len(found)]])
        if whole.certificate.truncated == 0:
            assert result.certificate.proven == min(2, whole.finished)
        for hypothesis in result.hypotheses:
            prefixes = [hypothesis.tokens[:i] for i in range(len(hypothesis.tokens) + 1)]
            assert hypothesis.attention is not None
            assert hypothesis.attention[:, 0].tolist() == [sum(p) + 10.0 * len(p) for p in prefixes]


def test_exact_search_obeys_constraints() -> None:
    wish = Constraints(min_length=2, block_ngram_repeat=1)
    for seed in range(40):
        config = SearchConfig(1, 3, 4, constraints=wish)
        wide = beam_search(
            TableStepper(), [Table(seed, 1.0)], SearchConfig(1000, 3, 4, constraints=wish), [[3]]
        )[0]
        result = exact_search(TableStepper(), [Table(seed, 1.0)], config, None, [3])
        assert [h.tokens for h in result.hypotheses] == [h.tokens for h in wide.hypotheses]
        assert all(h.tokens[0] == 3 for h in result.hypotheses)


@pytest.mark.parametrize("mass", [0.5, 0.9, 1.0])
def test_enumeration_stops_at_a_mass(mass: float) -> None:
    complete = 0
    for seed in range(80):
        table = Table(seed, (1.2, 1.5, 2.0)[seed % 3], end=1.0)
        support = enumerate_support(TableStepper(), [table], 6, 2000)
        config = SearchConfig(n_best=0, max_length=6)
        result = exact_search(TableStepper(), [table], config, mass=mass)
        check(result, support, config)
        proven = result.hypotheses[: result.certificate.proven]
        reached = sum(h.prob for h in proven) >= mass - 1e-9
        assert reached or result.certificate.truncated or result.certificate.excluded
        complete += result.certificate.level == "exhaustive"
        if mass == 1.0 and not support.prefixes:
            assert result.certificate.level == "exhaustive"
    assert complete > 5


def test_only_proven_hypotheses_count_for_the_mass() -> None:
    """The empty output has the mass that is wanted, and two others have more each."""
    after = {(2,): {EOS: 0.5, 4: 0.5}, (2, 4): {EOS: 1.0}}
    model = Fixed({(): {EOS: 0.3, 2: 0.7}, **after})
    result = exact_search(TableStepper(7), [model], SearchConfig(5, n_best=0), mass=0.3)
    assert result.hypotheses[0].prob == pytest.approx(0.35)
    assert (result.certificate.proven, result.rows) == (1, 2)


def test_the_whole_support_is_listed_where_a_part_is_rounded_to_all_the_mass() -> None:
    model = Fixed({(): {EOS: 1.0, 2: 1e-9}, (2,): {EOS: 1.0}})
    result = exact_search(TableStepper(7), [model], SearchConfig(5, n_best=0))
    assert [h.tokens for h in result.hypotheses] == [(), (2,)]
    assert result.certificate.level == "exhaustive"


def test_only_a_whole_support_settles_a_list_of_all() -> None:
    model = Fixed({(): {EOS: 0.6, 2: 0.3, 3: 0.1}, (2,): {EOS: 1.0}, (3,): {EOS: 1.0}})
    (part,) = beam_search(TableStepper(7), [model], SearchConfig(1, 0))
    (whole,) = beam_search(TableStepper(7), [model], SearchConfig(2, 0))
    assert (part.certificate.level, part.certificate.proven) == ("optimal", 1)
    assert [is_settled(part, n_best) for n_best in (1, 2, 0)] == [True, False, False]
    assert is_settled(whole, 0)


@pytest.mark.parametrize(
    "budget", [Budget(expansions=10), Budget(states=3), Budget(1, 1, 1)], ids=str
)
def test_when_the_budget_ends_the_bound_still_holds(budget: Budget) -> None:
    levels = set()
    for seed in range(30):
        table = Table(seed, 1.0 if seed % 2 else 1.2, 6, 1.0)
        support = enumerate_support(TableStepper(6), [table], 4, 1000)
        config = SearchConfig(1, 2, 4)
        result = exact_search(TableStepper(6), [table], config, budget)
        check(result, support, config)
        levels.add(result.certificate.level)
        outside = set(support.strings) - {h.tokens for h in result.hypotheses}
        if result.finished == len(result.hypotheses):
            assert all(support.strings[s] <= result.certificate.log_bound + 1e-9 for s in outside)
    assert "none" in levels


@pytest.mark.parametrize("expansions", [1, 2, 7])
def test_no_more_is_computed_than_the_budget_has(expansions: int) -> None:
    model, budget = TableStepper(), Budget(expansions, rows=1)
    result = exact_search(model, [Table(0, 1.0)], SearchConfig(1, 0, 6), budget)
    assert result.rows == model.rows == expansions


@pytest.mark.parametrize("kind", DECODERS)
def test_exact_search_of_real_networks(kind: str) -> None:
    for seed in range(3):
        model = stepper(network(kind, 1.0, seed), attention=True)
        for sentence in sentences(2, seed):
            support = enumerate_support(model, sentence, 4, 1000)
            config = SearchConfig(1, 3, 4)
            result = exact_search(model, sentence, config, Budget(rows=3))
            check(result, support, config, 1e-4)
            unseen = max(support.prefixes.values(), default=-math.inf)
            provable = sum(p > unseen + 1e-4 for p in support.strings.values())
            assert result.certificate.proven >= min(3, provable)


def test_wrong_options_are_refused() -> None:
    with pytest.raises(ValueError, match="expansions must be at least 1"):
        Budget(expansions=0)
    config = SearchConfig(n_best=0, penalties=Penalties("avg"))
    with pytest.raises(ValueError, match="listed by probability"):
        exact_search(TableStepper(), [Table(0, 1.0)], config)


def test_where_states_are_too_many_the_least_probable_prefixes_are_dropped() -> None:
    after = {(2,): {4: 0.9, 5: 0.1}, (3,): {EOS: 1.0}, (4,): {EOS: 1.0}}
    ends = {(2, 4): {EOS: 1.0}, (2, 5): {EOS: 1.0}}
    model = Fixed({(): {2: 0.5, 3: 0.3, 4: 0.2}, **after, **ends})
    budget = Budget(states=1, rows=1)
    result = exact_search(TableStepper(7), [model], SearchConfig(1, n_best=0), budget)
    assert [h.tokens for h in result.hypotheses] == [(2, 4), (2, 5)]
    certificate = result.certificate
    assert (certificate.bound, certificate.proven) == (pytest.approx(0.3), 1)


def test_prefixes_that_became_hopeless_in_the_frontier_are_counted_as_dropped() -> None:
    model = Fixed(
        {
            (): {2: 0.3, 3: 0.28, 4: 0.24, 5: 0.18},
            (2,): {EOS: 0.5, BOS: 0.5},
            (3,): {EOS: 0.75, BOS: 0.25},
            (4,): {EOS: 0.5, BOS: 0.5},
            (5,): {EOS: 1.0},
        }
    )
    stepper = TableStepper(7)
    result = exact_search(stepper, [model], SearchConfig(1), Budget(rows=2))
    certificate = result.certificate
    assert (certificate.level, certificate.dropped, result.finished) == ("optimal", 1, 3)
    assert certificate.bound == pytest.approx(0.18)
    # The beam's (), (2,) and the exact search's (), (2,) and (3,), (4,).
    assert (result.rows, result.support) == (stepper.rows, 4 + 2 + 4 + 2 + 2 + 2) == (6, 16)


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


def test_under_penalties_the_bound_is_not_that_of_the_beam() -> None:
    """The beam has found (2,), with 0.4, but did not return it: (3, 4, 5) scores more."""
    ends = {(2,): {EOS: 1.0}, (3, 4, 5): {EOS: 1.0}, (4,): {EOS: 1.0}, (5,): {EOS: 1.0}}
    first = {2: 0.4, 3: 0.3, 4: 0.2, 5: 0.1}
    model = Fixed({(): first, (3,): {4: 1.0}, (3, 4): {5: 1.0}, **ends})
    config = SearchConfig(2, 1, 6, penalties=Penalties("avg"))
    result = exact_search(TableStepper(7), [model], config, Budget(expansions=1))
    assert (result.finished, result.hypotheses[0].tokens) == (2, (3, 4, 5))
    assert result.certificate.mass == pytest.approx(0.7)  # with what was not handed over
    assert result.certificate.bound == pytest.approx(0.4)


def test_the_unfinished_output_is_the_most_probable_one_that_was_cut() -> None:
    for seed in range(100):
        table = Table(seed, 1.0, 6, 1.0, -3.0)
        config = SearchConfig(2, max_length=4, constraints=Constraints(min_length=5))
        beam = beam_search(TableStepper(6), [table], config)[0]
        exact = exact_search(TableStepper(6), [table], config, Budget(expansions=200))
        assert beam.unfinished is not None
        assert exact.unfinished is not None
        assert exact.unfinished.log_prob >= beam.unfinished.log_prob
        if seed < 10:
            cut = enumerate_support(TableStepper(6), [table], 3, 1000).prefixes
            everything = exact_search(TableStepper(6), [table], config, Budget(expansions=10_000))
            assert everything.unfinished is not None
            assert everything.unfinished.tokens == max(cut, key=lambda prefix: cut[prefix])
    ends = Fixed({(): {2: 0.6, 3: 0.4}, (2,): {4: 1.0}, (3,): {EOS: 1.0}})
    result = exact_search(TableStepper(7), [ends], SearchConfig(1, max_length=1), Budget(rows=1))
    assert result.hypotheses
    assert result.unfinished is None


def test_a_prefix_without_allowed_continuation_is_not_unfinished() -> None:
    model = Fixed({(): {2: 0.6, EOS: 0.4}, (2,): {EOS: 1.0}})
    result = beam_search(TableStepper(7), [model], SearchConfig(max_length=1), [(2, 3)])[0]
    assert (result.certificate.level, result.certificate.truncated) == ("exhaustive", 0)
    assert result.best is None


def test_the_strict_reading_is_of_the_beam_that_was_asked_for() -> None:
    model = Fixed({(): {2: 0.6, EOS: 0.4}, (2,): {EOS: 1.0}})
    for stop, beam in product(("exhaustive", "optimal"), (5, 2)):  # two fit a beam of two
        result = beam_search(TableStepper(7), [model], SearchConfig(beam, stop=stop))[0]
        assert (result.certificate.level, result.certificate.strict) == ("exhaustive", True)
    wide = Fixed({(): dict.fromkeys(range(2, 7), 0.2), **{(i,): {EOS: 1.0} for i in range(2, 7)}})
    result = exact_search(TableStepper(7), [wide], SearchConfig(1, n_best=0))
    assert (result.certificate.level, result.certificate.strict) == ("exhaustive", False)
