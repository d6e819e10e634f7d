"""Sequence-level ensembles against completely known distributions."""

import math
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onmt_entmax.search.sequence_ensemble import (
    ListedSequences,
    SequenceEnsemble,
    average_sequences,
)

STRINGS = "abcdef"  # a sequence each
ROUNDING = 1e-12  # more than that of averages of four probabilities
SMALLEST = math.ulp(0.0)  # of positive floats; half of it is 0
FIRST = ListedSequences({"a": 0.6, "b": 0.4}, rest=0.0)
SECOND = ListedSequences({"a": 0.7, "c": 0.3}, rest=0.2)


# --- averages of drawn models ----------------------------------------------------------------


class SearchedModel(NamedTuple):
    """A model whose distribution is completely known, and what a search may list of it."""

    truth: dict[str, float]
    listed: ListedSequences


@st.composite
def searched_models(draw: st.DrawFn) -> SearchedModel:
    """Draw a distribution over six sequences, and a list of some of them.

    A search need not be sharp. Its bound on what it has not listed is the largest probability there
    or `above` more; and what it lists may have `slack` less than in truth, where slack is 0 or all
    of `above`. A sharp search lists no sequence of probability zero; a list with slack may.
    """
    parts = draw(st.lists(st.integers(0, 4), min_size=6, max_size=6).filter(any))
    truth = {string: part / sum(parts) for string, part in zip(STRINGS, parts, strict=True)}
    shown = draw(st.sets(st.sampled_from(STRINGS)))
    largest_unlisted = max((truth[string] for string in STRINGS if string not in shown), default=0)
    above = draw(st.sampled_from([0.0, 0.0, 0.05]))  # mostly sharp
    slack = draw(st.sampled_from([0.0, above]))
    listed = {s: max(0.0, truth[s] - slack) for s in STRINGS if s in shown}
    if above == 0:
        listed = {string: p for string, p in listed.items() if p > 0}
    return SearchedModel(truth, ListedSequences(listed, rest=largest_unlisted + above, slack=slack))


class Average(NamedTuple):
    """An average of listed sequences, and the true probability of each sequence."""

    truth: dict[str, float]
    result: SequenceEnsemble


@st.composite
def drawn_averages(draw: st.DrawFn) -> Average:
    """Draw the average of one to four models, with weights."""
    models = draw(st.lists(searched_models(), min_size=1, max_size=4))
    count = len(models)
    parts = draw(st.lists(st.integers(1, 3), min_size=count, max_size=count))
    weights = [part / sum(parts) for part in parts]
    truth = {
        string: sum(w * model.truth[string] for w, model in zip(weights, models, strict=True))
        for string in STRINGS
    }
    return Average(truth, average_sequences([model.listed for model in models], weights))


averages = drawn_averages()


@given(averages)
def test_sequences_are_in_the_order_of_their_probabilities(average: Average) -> None:
    probabilities = list(average.result.probabilities)
    assert probabilities == sorted(probabilities, reverse=True)


@given(averages)
def test_probabilities_are_lower_bounds(average: Average) -> None:
    result = average.result
    for string, probability in zip(result.sequences, result.probabilities, strict=True):
        assert probability <= average.truth[string] + ROUNDING


@given(averages)
def test_no_sequence_has_more_than_the_bound_beyond_its_probability(average: Average) -> None:
    truth, result = average
    for string, probability in zip(result.sequences, result.probabilities, strict=True):
        assert truth[string] <= probability + result.bound + ROUNDING
    outside = [truth[string] for string in STRINGS if string not in result.sequences]
    assert max(outside, default=0.0) <= result.bound + ROUNDING


@given(averages)
def test_an_average_is_exhaustive_if_nothing_is_left(average: Average) -> None:
    assert (average.result.level == "exhaustive") == (average.result.bound == 0)


@given(averages.filter(lambda average: average.result.level == "exhaustive"))
def test_an_exhaustive_average_has_the_true_probabilities(average: Average) -> None:
    expected = [average.truth[string] for string in average.result.sequences]
    assert list(average.result.probabilities) == pytest.approx(expected)


@given(averages)
def test_a_proven_sequence_is_at_least_as_probable_as_all_after_it(average: Average) -> None:
    truth, result = average
    for rank, string in enumerate(result.sequences[: result.proven]):
        ahead = result.sequences[: rank + 1]
        later = [truth[other] for other in STRINGS if other not in ahead]
        assert truth[string] >= max(later, default=0.0) - ROUNDING


@given(averages)
def test_a_gap_is_negative_if_nothing_is_proven(average: Average) -> None:
    assert (average.result.gap < 0) == (average.result.level == "none")


@given(averages.filter(lambda average: average.result.level == "optimal"))
def test_an_optimal_sequence_is_the_most_probable(average: Average) -> None:
    truth, result = average
    assert truth[result.sequences[0]] >= max(truth.values()) - ROUNDING


# --- averages of known numbers ---------------------------------------------------------------


def test_bounds_prove_ranks() -> None:
    """`b` may have 0.2 in the second model, and an unlisted sequence 0.5 * 0.2 on average.

    So `a` has 0.65, `b` from 0.2 to 0.3, and `c` exactly 0.15, since the first model's list is
    whole: each has more than any after it may have.
    """
    average = average_sequences([FIRST, SECOND], weights=[0.5, 0.5])
    assert average.sequences == ("a", "b", "c")
    assert average.probabilities == pytest.approx((0.65, 0.2, 0.15))
    assert average.bound == pytest.approx(0.1)
    assert average.gap == pytest.approx(math.log(0.65 / 0.3))
    assert (average.level, average.proven) == ("optimal", 3)


def test_a_larger_bound_proves_fewer_ranks() -> None:
    """`b` is no longer known to be ahead of `c`, nor `c` proven.

    `c` may have 0.5 * 0.2 in the other model, 0.25 in all; the bound is 0.2.
    """
    more_unknown = ListedSequences({"a": 0.6, "b": 0.4}, rest=0.2)
    average = average_sequences([more_unknown, SECOND], weights=[0.5, 0.5])
    assert (average.level, average.proven) == ("optimal", 1)


def test_a_listed_sequence_may_have_more() -> None:
    """Here `b` may have up to 0.45 + 0.1, and be ahead of `a`, which has 0.5 or more."""
    listed = ListedSequences({"a": 0.5, "b": 0.45}, rest=0.1, slack=0.1)
    average = average_sequences([listed], weights=[1.0])
    assert (average.level, average.gap) == ("none", pytest.approx(math.log(0.5 / 0.55)))


@pytest.mark.parametrize("order", [("x", "y"), ("y", "x")])
def test_ties_keep_the_order_of_the_models(order: tuple[str, str]) -> None:
    parts = [ListedSequences({sequence: 1.0}, rest=0.0) for sequence in order]
    average = average_sequences(parts, weights=[0.5, 0.5])
    assert (average.sequences, average.probabilities) == (order, (0.5, 0.5))
    assert (average.level, average.gap, average.proven) == ("exhaustive", math.inf, 2)


# --- numbers that round to 0 or to one another -----------------------------------------------


def test_a_bound_that_underflows_in_the_average_is_not_zero() -> None:
    parts = [ListedSequences({"a": 1.0}, rest=rest) for rest in (SMALLEST, 0.0)]
    average = average_sequences(parts, weights=[0.5, 0.5])
    assert (average.level, average.proven) == ("optimal", 1)
    assert 0 < average.bound < 1e-300


def test_a_probability_that_underflows_is_below_the_smallest_bound() -> None:
    average = average_sequences([ListedSequences({"a": 0.0}, rest=SMALLEST)], weights=[1.0])
    assert (average.level, average.proven, average.gap) == ("none", 0, -math.inf)


def test_a_gap_is_negative_where_logarithms_round_to_the_same_number() -> None:
    """The first is one bit less probable than another sequence may be."""
    first = 0.2
    above = math.nextafter(first, 1.0)
    assert math.log(first) == math.log(above)
    average = average_sequences([ListedSequences({"a": first}, rest=above)], weights=[1.0])
    assert (average.level, average.proven) == ("none", 0)
    assert average.gap < 0
