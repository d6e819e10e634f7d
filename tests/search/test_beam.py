"""Beam search and its certificate against brute-force enumeration."""

import math
import random
from typing import Any

import pytest

from onmt_entmax.search import EnsembleStepper, Penalties, SearchConfig, beam_search
from onmt_entmax.search.beam import BeamSearch
from tests.search.checks import check
from tests.search.enumeration import enumerate_support
from tests.search.tables import EOS, Fixed, Table, TableStepper

ALPHAS = (1.0, 1.2, 1.5, 2.0)


def random_table(seed: int) -> Table:
    draw = random.Random(seed)
    return Table(seed, ALPHAS[seed % 4], draw.choice([3, 4, 5, 6]), draw.choice([1.0, 2.0, 4.0]))


@pytest.mark.parametrize("stop", ["exhaustive", "optimal", "first"])
@pytest.mark.parametrize("part", range(4))
def test_no_certified_answer_differs_from_enumeration(part: int, stop: str) -> None:
    levels = {"exhaustive": 0, "optimal": 0, "none": 0}
    for seed in range(part * 250, (part + 1) * 250):
        draw = random.Random(-seed)
        table, length = random_table(seed), draw.choice([0, 2, 4])
        stepper = TableStepper(table.vocabulary_size)
        support = enumerate_support(stepper, [table], length, 1000)
        config = SearchConfig(draw.randint(1, 10), draw.choice([0, 1, 3]), length, stop)  # type: ignore[arg-type]
        result = beam_search(stepper, [table], config)[0]
        check(result, support, config)
        levels[result.certificate.level] += 1
    assert min(levels.values()) > 5, "every level must occur for the test to mean something"


@pytest.mark.parametrize("n_best", [1, 3])
def test_a_batch_gives_what_its_sentences_give_alone(n_best: int) -> None:
    tables = [Table(seed, ALPHAS[seed % 4]) for seed in range(60)]
    config = SearchConfig(4, n_best, 5)
    together = beam_search(TableStepper(), tables, config)
    assert together == [beam_search(TableStepper(), [table], config)[0] for table in tables]


def test_sentences_may_join_a_search_that_is_under_way() -> None:
    tables = [Table(seed, ALPHAS[seed % 4]) for seed in range(40)]
    config = SearchConfig(3, 2, 6)
    search, results = BeamSearch(TableStepper(), config), {}
    for table in tables:
        search.admit([table])
        results.update(search.advance())
    while len(search):
        results.update(search.advance())
    assert [results[i] for i in range(40)] == beam_search(TableStepper(), tables, config)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_a_beam_as_wide_as_the_space_finds_what_enumeration_finds(alpha: float) -> None:
    for seed in range(20):
        table = Table(seed, alpha, 4)
        support = enumerate_support(TableStepper(4), [table], 4, 1000)
        result = beam_search(TableStepper(4), [table], SearchConfig(1000, 0, 4))[0]
        assert {h.tokens: h.log_prob for h in result.hypotheses} == pytest.approx(support.strings)
        assert result.certificate.truncated == len(support.prefixes)
        assert result.certificate.level == ("optimal" if support.prefixes else "exhaustive") or (
            max(support.prefixes.values()) > result.hypotheses[0].log_prob
        )
        excluded = sum(math.exp(value) for value in support.excluded.values())
        assert result.certificate.excluded == pytest.approx(excluded)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_a_beam_of_one_is_greedy(alpha: float) -> None:
    """Its live path is the greedy one; it also finds the sequences that end along it."""
    same = 0
    for seed in range(50):
        table, prefix, log_prob, ends = Table(seed, alpha, end=1.0), (), 0.0, {}
        for _ in range(30):
            scores = table.log_probs(prefix)
            token = max(range(1, 5), key=lambda t: scores[t])  # 0 is excluded
            ends[prefix] = log_prob + scores[EOS]
            if token == EOS:
                break
            prefix, log_prob = (*prefix, token), log_prob + scores[token]
        result = beam_search(TableStepper(), [table], SearchConfig(1, 1, 30, "optimal"))[0]
        best = max(ends, key=lambda string: ends[string])
        if ends[best] == -math.inf:  # every end was excluded
            assert (result.best, result.certificate.excluded) == (None, pytest.approx(1))
            continue
        assert result.hypotheses[0].tokens == best
        assert result.hypotheses[0].log_prob == pytest.approx(ends[best])
        same += best == prefix
    assert same > 25, "greedy decoding itself must be the usual answer"


def test_an_ensemble_averages_probabilities_and_unites_supports() -> None:
    sizes = {"one": 0, "many": 0}
    for seed in range(100):
        models = [Table(seed + 1000 * i, 2.0 if seed % 2 else 1.3, 4) for i in range(3)]
        stepper = EnsembleStepper([OneOf(models, i) for i in range(3)])
        support = enumerate_support(stepper, [None], 3, 1000)
        if not support.strings:  # every end was excluded
            continue
        string = max(support.strings, key=lambda tokens: support.strings[tokens])
        expected = 0.0
        for position, token in enumerate([*string, EOS]):
            rows = [model.log_probs(string[:position]) for model in models]
            expected += math.log(sum(math.exp(row[token]) for row in rows) / 3)
        assert support.strings[string] == pytest.approx(expected)
        config = SearchConfig(seed % 10 + 1, 0, 3)
        result = beam_search(stepper, [None], config)[0]
        check(result, support, config)
        sizes["one" if result.finished == 1 else "many"] += 1
    assert min(sizes.values()) > 0


class OneOf(TableStepper):
    """A member of an ensemble with a table of its own, whatever the batch."""

    def __init__(self, models: list[Table], member: int) -> None:
        super().__init__(models[member].vocabulary_size)
        self.model = models[member]

    def start(self, batch: list[None]) -> Any:
        return super().start([self.model] * len(batch))


def test_one_live_prefix_costs_one_row() -> None:
    certain = Fixed({(): {2: 1.0}, (2,): {3: 1.0}, (2, 3): {EOS: 1.0}})
    stepper = TableStepper(7)
    result = beam_search(stepper, [certain], SearchConfig(5))[0]
    assert stepper.rows == result.rows == result.support == 3
    assert result.hypotheses[0].tokens == (2, 3)
    assert (result.certificate.level, result.certificate.strict) == ("exhaustive", True)
    assert (result.certificate.mass, result.certificate.bound) == (1.0, 0.0)


def test_finished_hypotheses_take_no_place_in_the_beam() -> None:
    model = Fixed(
        {
            (): {EOS: 0.5, 2: 0.5},
            (2,): {EOS: 0.5, 3: 0.5},
            (2, 3): {EOS: 0.5, 4: 0.5},
            (2, 3, 4): {EOS: 1.0},
        }
    )
    result = beam_search(TableStepper(7), [model], SearchConfig(1, 0))[0]
    assert [h.prob for h in result.hypotheses] == pytest.approx([0.5, 0.25, 0.125, 0.125])
    assert result.certificate.level == "exhaustive"
    assert not result.certificate.strict, "four hypotheses do not fit a beam of one"


def test_a_tie_is_optimal_and_a_cut_prefix_is_counted() -> None:
    model = Fixed({(): {EOS: 0.5, 2: 0.5}, (2,): {2: 1.0}})
    result = beam_search(TableStepper(7), [model], SearchConfig(1, 1, 1))[0]
    certificate = result.certificate
    assert (certificate.level, certificate.gap, certificate.truncated) == ("optimal", 0.0, 1)
    assert certificate.proven == 1


def test_where_nothing_finishes_the_best_prefix_is_returned_as_unfinished() -> None:
    model = Fixed({(): {2: 0.6, 3: 0.4}, (2,): {2: 1.0}, (3,): {3: 0.5, 2: 0.5}})
    result = beam_search(TableStepper(7, attention=True), [model], SearchConfig(5, 1, 1))[0]
    assert (result.hypotheses, result.certificate.level) == ((), "none")
    assert result.unfinished is result.best
    assert result.unfinished is not None
    assert (result.unfinished.tokens, result.unfinished.log_prob) == (
        (2,),
        pytest.approx(math.log(0.6)),
    )
    assert result.certificate.bound == pytest.approx(0.6)
    assert result.certificate.gap == -math.inf


def test_attention_belongs_to_the_hypothesis() -> None:
    tables = [Table(seed, 1.5) for seed in range(20)]
    for result in beam_search(TableStepper(attention=True), tables, SearchConfig(3, 0, 5)):
        for hypothesis in result.hypotheses:
            prefixes = [hypothesis.tokens[:i] for i in range(len(hypothesis.tokens) + 1)]
            assert hypothesis.attention is not None
            expected = [[sum(prefix) + 10.0 * len(prefix)] for prefix in prefixes]
            assert hypothesis.attention.tolist() == expected


def test_n_best_ranks_are_proven_as_far_as_the_bound_reaches() -> None:
    model = Fixed(
        {
            (): {EOS: 0.4, 2: 0.35, 3: 0.25},
            (2,): {EOS: 0.9, 4: 0.1},
            (2, 4): {EOS: 1.0},
            (3,): {EOS: 1.0},
        }
    )
    result = beam_search(TableStepper(7), [model], SearchConfig(1, 3))[0]
    assert [h.tokens for h in result.hypotheses] == [(), (2,), (2, 4)]
    assert result.certificate.bound == pytest.approx(0.25)
    assert (result.certificate.level, result.certificate.proven) == ("optimal", 2)


def test_a_model_without_any_support_is_refused() -> None:
    with pytest.raises(ValueError, match="no token a positive probability"):
        beam_search(TableStepper(7), [Fixed({(): {}})], SearchConfig())


@pytest.mark.parametrize(
    "wrong", [{"beam_size": 0}, {"n_best": -1}, {"max_length": -1}, {"stop": "never"}]
)
def test_wrong_options_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        SearchConfig(**wrong)


def test_members_of_an_ensemble_must_share_their_vocabulary() -> None:
    with pytest.raises(ValueError, match="same target vocabulary"):
        EnsembleStepper([TableStepper(4), TableStepper(5)])


def test_a_probability_rounded_above_one_does_not_break_the_bound() -> None:
    class Rounded(Fixed):
        def log_probs(self, prefix: tuple[int, ...]) -> list[float]:
            return [value + 1e-7 for value in super().log_probs(prefix)]

    model = Rounded({(): {2: 1.0}, (2,): {2: 0.5, 3: 0.5}, (2, 2): {EOS: 1.0}, (2, 3): {EOS: 1.0}})
    result = beam_search(TableStepper(7), [model], SearchConfig(1))[0]
    assert result.certificate.level == "optimal"
    assert result.hypotheses[0].log_prob <= result.certificate.log_bound


def test_too_large_a_space_is_not_enumerated() -> None:
    with pytest.raises(ValueError, match="more than 10 prefixes"):
        enumerate_support(TableStepper(), [Table(0, 1.0)], 5, 10)


GARDEN_PATH = Fixed(
    {
        (): {2: 0.5, 3: 0.4, 4: 0.1},
        (2,): {4: 0.5, 5: 0.5},
        (2, 4): {EOS: 1.0},
        (2, 5): {EOS: 1.0},
        (3,): {EOS: 1.0},
        (4,): {EOS: 1.0},
    }
)


def test_without_joining_a_sentence_restarts_after_the_others(monkeypatch) -> None:
    stepper = TableStepper(7)
    stepper.can_join = False
    monkeypatch.setattr(stepper, "join", lambda _: pytest.fail("a Transformer joins no rows"))
    longer = Fixed({(): {2: 1.0}, (2,): {3: 1.0}, (2, 3): {4: 1.0}, (2, 3, 4): {EOS: 1.0}})
    results = beam_search(stepper, [GARDEN_PATH, longer], SearchConfig(2))
    assert [result.hypotheses[0].tokens for result in results] == [(3,), (2, 3, 4)]


def test_prefixes_that_cannot_win_are_dropped_once() -> None:
    model = Fixed({(): {EOS: 0.5, 2: 0.3, 3: 0.2}, (2,): {EOS: 1.0}, (3,): {EOS: 1.0}})
    stepper = TableStepper(7)
    certificate = beam_search(stepper, [model], SearchConfig(5, 1, stop="optimal"))[0].certificate
    assert (stepper.rows, certificate.dropped) == (1, 2)
    assert certificate.bound == pytest.approx(0.3)
    certificate = beam_search(stepper, [model], SearchConfig(5, 2, stop="optimal"))[0].certificate
    assert (stepper.rows, certificate.dropped, certificate.proven) == (1 + 3, 0, 2)


def test_stop_first_waits_for_n_best_hypotheses() -> None:
    model = Fixed({(): {EOS: 0.5, 2: 0.3, 3: 0.2}, (2,): {EOS: 1.0}, (3,): {EOS: 1.0}})
    for n_best in (1, 2, 3):
        result = beam_search(TableStepper(7), [model], SearchConfig(5, n_best, stop="first"))[0]
        assert len(result.hypotheses) == n_best


def test_stop_first_waits_for_beam_size_hypotheses() -> None:
    """With a length penalty; without one, the best would already be proven."""
    after = {(2,): {4: 0.7, EOS: 0.3}, (2, 4): {5: 1.0}, (2, 4, 5): {6: 1.0}}
    model = Fixed({(): {EOS: 0.5, 2: 0.5}, **after, (2, 4, 5, 6): {EOS: 1.0}})
    config = SearchConfig(3, 1, 8, "first", penalties=Penalties("wu", 1.0))
    found = beam_search(TableStepper(7), [model], config)[0]
    assert found.hypotheses[0].tokens == (2, 4, 5, 6)


def test_hopeless_prefixes_leave_the_beam() -> None:
    model = Fixed(
        {
            (): {EOS: 0.2, 2: 0.7, 3: 0.1},
            (2,): {4: 1.0},
            (2, 4): {EOS: 1.0},
            (3,): {EOS: 1.0},
        }
    )
    stepper = TableStepper(7)
    result = beam_search(stepper, [model], SearchConfig(5, 1, stop="first"))[0]
    assert (stepper.rows, result.certificate.dropped, result.finished) == (3, 1, 2)
    assert result.certificate.level == "optimal"
