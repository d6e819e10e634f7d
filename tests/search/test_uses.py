"""Scoring, suggestions, verification and streams."""

import math
import random
from dataclasses import replace

import pytest

from onmt_entmax.search import (
    Budget,
    EnsembleStepper,
    Penalties,
    SearchConfig,
    beam_search,
    exact_search,
    score_targets,
    stream_search,
    suggest,
    verify,
)
from onmt_entmax.search.stepper import SearchError
from tests.search.networks import network, sentences, stepper, together
from tests.search.tables import BOS, EOS, Fixed, Table, TableStepper


def test_a_score_is_the_sum_over_tokens_with_rank_and_support() -> None:
    draw = random.Random(0)
    tables = [Table(seed, (1.0, 1.5, 2.0)[seed % 3]) for seed in range(40)]
    targets = [[draw.randint(2, 4) for _ in range(draw.randint(0, 4))] for _ in tables]
    for table, target, score in zip(
        tables, targets, score_targets(TableStepper(), tables, targets), strict=True
    ):
        assert len(score.steps) == len(target) + 1
        excluded = []
        for i, (token, step) in enumerate(zip([*target, EOS], score.steps, strict=True)):
            row = table.log_probs(tuple(target[:i]))
            assert step.log_prob == pytest.approx(row[token])
            assert step.rank == 1 + sum(other > row[token] for other in row)
            assert step.support == sum(other > -math.inf for other in row)
            excluded += [i] if row[token] == -math.inf else []
        assert score.excluded_at == (excluded[0] if excluded else None)
        assert (score.log_prob == -math.inf) == bool(excluded)


def test_suggestions_are_the_support_and_what_follows_for_certain() -> None:
    forced = 0
    for seed in range(60):
        table = Table(seed, 2.0, spread=3.0, end=1.0)
        most = 2 + seed % 7
        suggestion = suggest(TableStepper(excluded=()), [table], [2], most)
        expected = {t: p for t, p in enumerate(table.log_probs((2,))) if p > -math.inf}
        assert dict(suggestion.continuations) == pytest.approx(expected)
        values = [value for _, value in suggestion.continuations]
        assert values == sorted(values, reverse=True)
        assert suggestion.log_prob == pytest.approx(table.log_probs(())[2])
        assert (suggestion.excluded_at == 0) == (suggestion.log_prob == -math.inf)
        prefix: tuple[int, ...] = (2,)
        while True:
            inside = [t for t, p in enumerate(table.log_probs(prefix)) if p > -math.inf]
            if inside != inside[:1] or inside == [EOS] or len(prefix) == most:
                break
            prefix = (*prefix, inside[0])
        assert (2, *suggestion.completion) == prefix
        assert suggestion.complete == (inside == [EOS])
        forced += len(prefix) > 1
    assert forced > 5


def test_the_whole_prefix_of_a_suggestion_is_scored() -> None:
    after = {(2,): {4: 0.5, EOS: 0.5}, (2, 4): {EOS: 1.0}, (5,): {2: 1.0}, (5, 5): {EOS: 1.0}}
    model = Fixed({(): {2: 0.5, 3: 0.5}, **after})
    found = suggest(TableStepper(7), [model], [2, 4])
    assert (found.log_prob, found.excluded_at) == (pytest.approx(math.log(0.25)), None)
    found = suggest(TableStepper(7), [model], [5, 5])
    assert (found.log_prob, found.excluded_at) == (-math.inf, 0), "the first of both is told"


def test_a_symbol_that_no_output_contains_is_no_completion() -> None:
    model = Fixed({(): {BOS: 1.0}, (BOS,): {2: 1.0}, (BOS, 2): {EOS: 1.0}})
    found = suggest(TableStepper(7), [model])
    assert (found.continuations, found.completion, found.complete) == ((), (), False)


@pytest.mark.parametrize("value", [math.nan, -math.inf])
def test_a_model_that_diverged_is_told(value: float, monkeypatch) -> None:
    half = [-math.inf, math.log(0.5), math.log(0.5), -math.inf, -math.inf]
    monkeypatch.setattr(Table, "log_probs", lambda _, prefix: [value] * 5 if prefix else half)
    table = Table(0, 1.5)
    for search in (
        lambda: score_targets(TableStepper(), [table], [[2, 2]]),
        lambda: suggest(TableStepper(), [table], [2]),
        lambda: beam_search(TableStepper(), [table], SearchConfig(2, 2, 4)),
        lambda: exact_search(TableStepper(), [table], SearchConfig(2, 2, 4)),
    ):
        with pytest.raises(SearchError, match="gives no token a positive probability"):
            search()


def test_a_probability_rounded_above_one_counts_as_one() -> None:
    class Rounded(Fixed):
        def log_probs(self, prefix: tuple[int, ...]) -> list[float]:
            return [value + 1e-7 for value in super().log_probs(prefix)]

    model = Rounded({(): {2: 1.0}, (2,): {EOS: 1.0}})
    assert score_targets(TableStepper(7), [model], [[2]])[0].log_prob == 0.0
    assert suggest(TableStepper(7), [model]).continuations == ((2, 0.0),)


def test_a_suggestion_leaves_out_symbols_that_no_output_contains() -> None:
    suggestion = suggest(TableStepper(excluded=(0, 3)), [Table(0, 1.0)])
    assert {token for token, _ in suggestion.continuations} == {1, 2, 4}
    assert (suggestion.completion, suggestion.complete) == ((), False)


@pytest.mark.parametrize("kind", ["input-feeding", "gru", "transformer"])
def test_float64_confirms_what_float32_certified(kind: str) -> None:
    config = SearchConfig(4, 2, 8)
    for seed in range(4):
        model = stepper(network(kind, 1.5, seed, double=False))
        batches = sentences(5, seed)
        double = model.double()
        results = beam_search(model, together(batches), config)
        for batch, result in zip(batches, results, strict=True):
            assert verify(double, batch, result, config).agrees


def test_verification_counts_the_strings() -> None:
    config, after = SearchConfig(5, 2), {(2,): {EOS: 1.0}, (3,): {EOS: 1.0}}
    claimed = beam_search(TableStepper(7), [Fixed({(): {EOS: 0.6, 2: 0.4}, **after})], config)[0]
    other = Fixed({(): {EOS: 0.6, 2: 0.3, 3: 0.1}, **after})
    assert verify(TableStepper(7), [other], claimed, config).agrees is False


def test_more_strings_than_there_should_be_contradict_before_the_budget_ends() -> None:
    config = SearchConfig(1)
    one = Fixed({(): {EOS: 0.6, 2: 0.4}, (2,): {EOS: 1.0}})
    after = {(2,): {EOS: 0.5, 4: 0.5}, (2, 4): {EOS: 1.0}, (3,): {EOS: 1.0}}
    other = Fixed({(): {EOS: 0.6, 2: 0.25, 3: 0.15}, **after})
    claimed = beam_search(TableStepper(7), [one], config)[0]
    assert claimed.certificate.level == "exhaustive"
    short = verify(TableStepper(7), [other], claimed, config, budget=Budget(expansions=1))
    assert short.agrees is False


def test_what_an_exact_search_proved_is_verified_by_one() -> None:
    config = SearchConfig(1, 3, 5)
    for seed in range(30):
        tables = [Table(seed, (1.0, 1.5)[seed % 2], end=1.0)]
        result = exact_search(TableStepper(), tables, config)
        assert verify(TableStepper(), tables, result, config).agrees
    listing = SearchConfig(2, 0, 8)
    for seed in range(30):
        tables = [Table(seed, 1.5, end=1.0)]
        result = exact_search(TableStepper(), tables, listing, mass=0.9)
        assert verify(TableStepper(), tables, result, listing).agrees


def test_what_the_budget_ends_before_it_is_proven_again_is_undecided() -> None:
    config, doubtful, crowded = SearchConfig(1), 0, 0
    for seed in range(30):
        tables = [Table(seed, 1.0, 6, 1.0, 1.0)]
        result = exact_search(TableStepper(6), tables, config)
        enough = beam_search(TableStepper(6), tables, config)[0].certificate.proven == 1
        short = verify(TableStepper(6), tables, result, config, budget=Budget(expansions=1))
        assert short.agrees is (True if enough else None)
        doubtful += not enough
        few = verify(TableStepper(6), tables, result, config, budget=Budget(states=1, rows=1))
        assert few.agrees is not False
        crowded += few.agrees is None
    assert min(doubtful, crowded) > 3


def test_strings_that_are_cut_do_not_hide_a_disagreement() -> None:
    """The claim cannot be proven within the length limit, whatever the budget."""
    config, found = SearchConfig(2, 1, 2), 0
    for seed in range(30):
        tables = [Table(seed, 1.5, end=-2.0)]
        result = exact_search(TableStepper(), tables, config)
        if result.certificate.truncated and result.certificate.level == "none":
            found += bool(result.hypotheses)
            claimed = replace(result.certificate, level="optimal", proven=len(result.hypotheses))
            wrong = replace(result, certificate=claimed)
            verified = verify(TableStepper(), tables, wrong, config)
            assert verified.agrees is (not result.hypotheses)
    assert found > 3


def test_a_better_score_contradicts() -> None:
    """The score of (2,) is above that of the empty output, which is claimed to be the best."""
    model = Fixed({(): {EOS: 0.5, 2: 0.3, 3: 0.1, 4: 0.1}, (2,): {EOS: 1.0}})
    config = SearchConfig(1, 2, 20, penalties=Penalties("avg"))
    result = beam_search(TableStepper(7), [model], config)[0]
    claimed = replace(result.certificate, level="optimal", proven=1)
    wrong = replace(result, hypotheses=result.hypotheses[1:], certificate=claimed)
    short = verify(TableStepper(7), [model], wrong, config, budget=Budget(expansions=1))
    assert short.agrees is False


TIE = Fixed(
    {
        (): {EOS: 0.1, 2: 0.35, 3: 0.35, 4: 0.2},
        (2,): {EOS: 0.9, 5: 0.1},
        (3,): {EOS: 0.9, 6: 0.1},
    }
)


@pytest.mark.parametrize("reward", [0.0, 0.1])
@pytest.mark.parametrize("stop", ["exhaustive", "optimal"])
@pytest.mark.parametrize("n_best", [1, 2, 6, 0])
@pytest.mark.parametrize("beam_size", [2, 5])
def test_equal_scores_may_be_in_any_order(beam_size, n_best, stop, reward) -> None:
    """The other run had the second of two equally probable tokens first."""
    config = SearchConfig(beam_size, n_best, 3, stop, penalties=Penalties(length_reward=reward))
    swap = {2: 3, 3: 2, 5: 6, 6: 5}

    def swapped(tokens: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(swap.get(token, token) for token in tokens)

    (result,) = beam_search(TableStepper(7), [TIE], config)
    assert result.certificate.proven
    other = [replace(each, tokens=swapped(each.tokens)) for each in result.hypotheses]
    assert verify(TableStepper(7), [TIE], replace(result, hypotheses=other), config).agrees


@pytest.mark.parametrize("n_best", [1, 2])
@pytest.mark.parametrize("stop", ["exhaustive", "optimal"])
@pytest.mark.parametrize(
    ("model", "agrees"),
    [
        ({EOS: 0.2, 2: 0.4, 3: 0.4}, True),
        ({EOS: 0.2, 2: 0.4 - 1e-7, 3: 0.4 + 1e-7}, False),
        ({EOS: 0.6, 3: 0.4}, False),
        ({EOS: 0.2, 3: 0.8}, False),
    ],
)
def test_what_is_no_tie_in_float64_is_a_disagreement(n_best, stop, model, agrees) -> None:
    config = SearchConfig(5, n_best, stop=stop)
    (result,) = beam_search(TableStepper(7), [Fixed({(): {EOS: 0.2, 2: 0.4, 3: 0.4}})], config)
    assert result.hypotheses[0].tokens == (2,)
    assert verify(TableStepper(7), [Fixed({(): model})], result, config).agrees is agrees


def test_the_mean_encoder_has_no_float64() -> None:
    model = EnsembleStepper([stepper(network(kind, 1.5, 0)) for kind in ("lstm", "mean")])
    with pytest.raises(ValueError, match="mean encoder"):
        model.double()


@pytest.mark.parametrize("kind", ["table", "input-feeding", "lstm", "gru", "transformer"])
@pytest.mark.parametrize("rows", [1, 7, 1000])
def test_a_stream_gives_what_single_sentences_give(kind: str, rows: int) -> None:
    config = SearchConfig(3, 1, 6)
    if kind == "table":
        model, groups = (
            TableStepper(),
            [[Table(3 * i + j, 1.5) for j in range(3)] for i in range(20)],
        )
        alone = [beam_search(model, [table], config)[0] for group in groups for table in group]
    else:
        model = stepper(network(kind, 1.5, 9))
        assert model.can_join == (kind != "transformer")
        singles = sentences(18)
        groups = [together(singles[i : i + 3]) for i in range(0, 18, 3)]
        alone = [beam_search(model, single, config)[0] for single in singles]
    results = dict(stream_search(model, ((group, None) for group in groups), config, rows))
    assert sorted(results) == list(range(len(alone)))
    for number, result in enumerate(alone):
        assert [h.tokens for h in results[number].hypotheses] == [
            h.tokens for h in result.hypotheses
        ]
        assert results[number].certificate.level == result.certificate.level


def test_fewer_strings_than_certified_disagree() -> None:
    config, two = SearchConfig(5), Fixed({(): {EOS: 0.6, 2: 0.4}})
    (claimed,) = beam_search(TableStepper(7), [Fixed({(): {EOS: 0.6, 2: 0.3, 3: 0.1}})], config)
    assert (claimed.certificate.level, claimed.finished) == ("exhaustive", 3)
    assert verify(TableStepper(7), [two], claimed, config).agrees is False


def test_what_float64_excludes_contradicts_before_the_budget_ends() -> None:
    config = SearchConfig(1)
    (claimed,) = beam_search(TableStepper(7), [Fixed({(): {2: 1.0}})], config)
    other = Fixed({(): {4: 0.5, 5: 0.3, 6: 0.2}, (4,): {4: 0.3, 5: 0.3, 6: 0.4}})
    short = verify(TableStepper(7), [other], claimed, config, budget=Budget(expansions=1))
    assert short.agrees is False
