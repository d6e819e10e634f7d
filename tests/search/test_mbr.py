"""Minimum Bayes risk: decisions by hand, and what each level claims."""

import pytest

from onmt_entmax.search import decide

# `a b c e` shares three of four tokens with each of the other outputs, which share two.
MIDDLE = {"a b c d": 0.4, "a x c e": 0.3, "a b c e": 0.3}


def test_the_middle_wins_by_expected_utility() -> None:
    decision = decide("edit_distance", MIDDLE, left=0, slack=0, bound=0)
    assert decision.texts[0] == "a b c e"
    assert decision.expected[0] == pytest.approx(0.4 * 3 / 4 + 0.3 * 3 / 4 + 0.3)


def test_a_decision_between_all_outputs_is_exact() -> None:
    decision = decide("edit_distance", MIDDLE, left=0, slack=0, bound=0)
    assert (decision.level, decision.slack) == ("exact", 0)


def test_the_most_probable_text_wins_by_exact_match() -> None:
    assert decide("exact_match", MIDDLE, left=0, slack=0, bound=0).texts[0] == "a b c d"


@pytest.mark.parametrize(
    ("left", "level"),
    [
        pytest.param(0.0, "exact", id="nothing is left"),
        # The first has 0.9 (1 - left); other texts of two tokens at most 2/3 (1 - left) + left.
        pytest.param(0.01, "proven", id="too little for another text"),
        pytest.param(0.18, "proven", id="just too little for another text"),
        pytest.param(0.2, "found", id="too little for the second"),
        # The second has 0.1 (1 - left) + left at most.
        pytest.param(0.6, "none", id="enough for the second"),
    ],
)
def test_the_level_depends_on_what_is_left(left: float, level: str) -> None:
    texts = {"a b": 0.9 * (1 - left), "c d": 0.1 * (1 - left)}
    assert decide("edit_distance", texts, left=left, slack=0, bound=left).level == level


@pytest.mark.parametrize(
    ("slack", "bound", "level"),
    [
        pytest.param(0.0, 0.2, "proven", id="above the bound"),
        pytest.param(0.0, 0.4, "proven", id="a tie with an output that was not found"),
        pytest.param(0.0, 0.5, "found", id="below the bound"),
        pytest.param(0.1, 0.2, "proven", id="a slack too small for the second"),
        pytest.param(0.3, 0.2, "none", id="a slack large enough for the second"),
    ],
)
def test_exact_match_uses_the_bounds_of_the_search(slack: float, bound: float, level: str) -> None:
    texts = {"a": 0.4, "b": 0.2}
    assert decide("exact_match", texts, left=0.4, slack=slack, bound=bound).level == level


def test_a_tie_of_two_texts_is_proven() -> None:
    texts = {"a": 0.4, "b": 0.4}
    assert decide("exact_match", texts, left=0.2, slack=0, bound=0.2).level == "proven"


def test_of_equally_good_texts_the_more_probable_is_first() -> None:
    """chrF does not see spaces."""
    texts = {"a b": 0.4, "ab": 0.6}
    assert decide("chrf", texts, left=0, slack=0, bound=0).texts == ("ab", "a b")


# --- more texts than are compared ---

FOUR_TEXTS = dict.fromkeys("abcd", 1 / 4)


@pytest.fixture
def three_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onmt_entmax.search.mbr.MOST_TEXTS", 3)


@pytest.mark.usefixtures("three_are_compared")
def test_texts_that_are_not_compared_count_as_not_listed() -> None:
    decision = decide("edit_distance", FOUR_TEXTS, left=0, slack=0, bound=0)
    assert decision.texts == ("a", "b", "c")
    assert (decision.slack, decision.level) == (1 / 4, "none")


@pytest.mark.usefixtures("three_are_compared")
def test_exact_match_compares_any_number_of_texts() -> None:
    assert len(decide("exact_match", FOUR_TEXTS, left=0, slack=0, bound=0).texts) == 4
