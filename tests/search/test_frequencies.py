"""`check_frequencies` itself: it must refuse draws that show nothing, or that are wrong."""

from collections import Counter

import pytest

from tests.search.frequencies import check_frequencies


def test_draws_with_the_right_frequencies_pass() -> None:
    check_frequencies(Counter(a=48, b=52), {"a": 0.5, "b": 0.5})


def test_no_draws_are_refused() -> None:
    with pytest.raises(AssertionError, match="0 draws are too few"):
        check_frequencies(Counter(), {"a": 1.0})


def test_draws_among_which_every_outcome_is_rare_are_refused() -> None:
    with pytest.raises(AssertionError, match="20 draws are too few"):
        check_frequencies(Counter(range(20)), dict.fromkeys(range(20), 0.05))


def test_an_impossible_outcome_is_refused() -> None:
    with pytest.raises(AssertionError, match="impossible outcomes were drawn"):
        check_frequencies(Counter(a=99, b=1), {"a": 1.0})


def test_wrong_frequencies_are_refused() -> None:
    with pytest.raises(AssertionError, match="sigma"):
        check_frequencies(Counter(a=90, b=10), {"a": 0.5, "b": 0.5})


def test_too_many_draws_of_a_rare_outcome_are_refused() -> None:
    with pytest.raises(AssertionError, match="20 draws of rare outcomes, of which 1 were expected"):
        check_frequencies(Counter(a=80, b=20), {"a": 0.99, "b": 0.01})
