"""Samples against the distribution that they are drawn from, over all outputs."""

from collections import Counter
from typing import Any, NamedTuple

import pytest

from onmt_entmax.search import Request, Sample, Sampling, sample
from onmt_entmax.search.expression_parser import parse_expression
from onmt_entmax.search.stepper import SearchError
from tests.search.automata import compiled
from tests.search.frequencies import check_frequencies
from tests.search.samples import Outcome, distribution, first_two, outcome_of
from tests.search.table_steppers import TableStepper
from tests.search.tables import BOS, EOS, Fixed, Table

# --- with replacement ------------------------------------------------------------------------


class Drawn(NamedTuple):
    """Samples of a table, and the probability of every outcome."""

    samples: tuple[Sample, ...]
    truth: dict[Outcome, float]


DRAWN = 2000  # samples


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(Sampling(), id="all tokens"),
        pytest.param(Sampling(topk=2), id="the best two"),
        pytest.param(Sampling(topp=0.7), id="the best of 0.7"),
        pytest.param(Sampling(topk=3, topp=0.9), id="both"),
    ],
)
def drawn(request: pytest.FixtureRequest) -> Drawn:
    """Samples of up to two tokens."""
    table, sampling = Table(3, alpha=1.2, spread=1.0), request.param
    (samples,) = sample(TableStepper(), Request([table]), sampling, count=DRAWN, max_length=2)
    return Drawn(samples, distribution(TableStepper(), [table], sampling, max_length=2))


def test_as_many_samples_are_drawn_as_are_asked_for(drawn: Drawn) -> None:
    assert len(drawn.samples) == DRAWN


def test_samples_have_the_frequencies_of_the_distribution(drawn: Drawn) -> None:
    check_frequencies(Counter(map(outcome_of, drawn.samples)), drawn.truth)


def test_samples_have_the_probabilities_of_the_distribution(drawn: Drawn) -> None:
    for output in drawn.samples[:20]:  # most of the others repeat them
        assert output.prob == pytest.approx(drawn.truth[outcome_of(output)], abs=1e-9)


def test_all_tokens_that_tie_with_the_last_of_the_best_may_be_drawn() -> None:
    model = Fixed({(): {2: 0.4, 3: 0.25, 4: 0.25, 5: 0.1}})
    (samples,) = sample(TableStepper(7), Request([model]), Sampling(topk=2), count=100)
    probabilities = {output.tokens: output.prob for output in samples}
    assert probabilities == pytest.approx({(2,): 0.4 / 0.9, (3,): 0.25 / 0.9, (4,): 0.25 / 0.9})


@pytest.mark.parametrize(
    ("topp", "tokens"), [(0.49, {(2,)}), (0.51, {(2,), (3,)}), (0.8, {(2,), (3,), (4,)})]
)
def test_no_more_tokens_are_drawn_than_reach_the_probability(
    topp: float, tokens: set[tuple[int, ...]]
) -> None:
    model = Fixed({(): {2: 0.5, 3: 0.25, 4: 0.25}})
    (samples,) = sample(TableStepper(7), Request([model]), Sampling(topp=topp), count=100)
    assert {output.tokens for output in samples} == tokens


# --- without replacement ---------------------------------------------------------------------

FOUR_OUTCOMES = Table(1, alpha=1.5, vocabulary_size=4, spread=1.5)
DISTINCT = Sampling(distinct=True)


@pytest.fixture
def four_outcomes() -> dict[Outcome, float]:
    """The outcomes of up to one token of a table, which are few enough to draw all of them."""
    outcomes = distribution(TableStepper(4), [FOUR_OUTCOMES], Sampling(), max_length=1)
    assert len(outcomes) == 4
    return outcomes


def test_distinct_samples_are_drawn_one_after_the_other(
    four_outcomes: dict[Outcome, float],
) -> None:
    """Pairs of samples of a thousand sentences have the frequencies of two such draws."""
    request = Request([FOUR_OUTCOMES] * 1000)
    samples = sample(TableStepper(4), request, DISTINCT, count=2, max_length=1)
    pairs = Counter(tuple(map(outcome_of, of_sentence)) for of_sentence in samples)
    check_frequencies(pairs, first_two(four_outcomes))


def test_distinct_samples_are_all_outcomes_once_if_there_are_no_more(
    four_outcomes: dict[Outcome, float],
) -> None:
    request = Request([FOUR_OUTCOMES])
    (samples,) = sample(TableStepper(4), request, DISTINCT, count=50, max_length=1)
    probabilities = {outcome_of(output): output.prob for output in samples}
    assert len(samples) == len(probabilities)
    assert probabilities == pytest.approx(four_outcomes, abs=1e-9)


# --- forced prefixes and dead ends -----------------------------------------------------------


@pytest.mark.parametrize(
    "sampling", [Sampling(topk=1), Sampling(distinct=True)], ids=["the best", "distinct"]
)
def test_samples_begin_with_the_forced_prefix(sampling: Sampling) -> None:
    """Its tokens cost nothing."""
    table = Table(2, alpha=1.2, spread=1.0)
    prefix = (2, 3)
    longest = 3
    request = Request([table], prefixes=[prefix])
    (samples,) = sample(TableStepper(), request, sampling, count=3, max_length=longest)
    assert all(output.tokens[:2] == prefix for output in samples)
    truth = distribution(TableStepper(), [table], sampling, longest, prefix)
    for output in samples:
        assert output.prob == pytest.approx(truth[outcome_of(output)], abs=1e-9)


@pytest.mark.parametrize(
    ("distinct", "count"),
    [pytest.param(False, 2, id="drawn twice"), pytest.param(True, 1, id="drawn once")],
)
def test_an_impossible_prefix_leaves_no_sample_and_its_neighbour_alone(
    distinct: bool, count: int
) -> None:
    """The only output is the empty one; without replacement it is drawn once."""
    empty = Fixed({(): {EOS: 1.0}})
    sampling = Sampling(distinct=distinct)
    request = Request([empty] * 2, prefixes=[(2,), ()])
    impossible, free = sample(TableStepper(7), request, sampling, count=2)
    assert impossible == ()
    assert [output.tokens for output in free] == [()] * count


def test_a_dead_end_is_not_a_complete_output() -> None:
    model = Fixed({(): {2: 1.0}, (2,): {BOS: 1.0}})
    (samples,) = sample(TableStepper(7), Request([model]), Sampling(), count=1)
    assert samples == (Sample(tokens=(2,), log_prob=0.0, complete=False),)


def test_a_model_without_any_token_is_an_error() -> None:
    with pytest.raises(SearchError, match="no token a positive probability"):
        sample(TableStepper(7), Request([Fixed({(): {}})]), Sampling(), count=1)


@pytest.mark.parametrize("wrong", [{"topk": -2}, {"topp": 1.1}, {"temp": 0.0}, {"seed": -1}])
def test_a_value_out_of_range_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(wrong))}: must"):
        Sampling(**wrong)


def test_an_automaton_is_refused() -> None:
    """Samples would not follow it."""
    automaton = compiled(parse_expression("2 .*"), [2, 3], EOS)
    request = Request([Table(0, alpha=1.5)], automata=[automaton])
    with pytest.raises(ValueError, match="an automaton goes with a search, not with sampling"):
        sample(TableStepper(), request, Sampling(), count=1)
