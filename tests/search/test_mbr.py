"""Minimum Bayes risk: utilities and their limits, decisions by hand, what each level claims."""

from collections import Counter
from collections.abc import Callable
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics import CHRF

from onmt_entmax.search import decide
from onmt_entmax.search.mbr import Utility, most_utility, utilities
from tests.oracles import edit_distance

TEXTS = st.lists(st.sampled_from(["a", "b", "ab", "c "]), max_size=9).map(" ".join)


def compared_parts(utility: str, text: str) -> object:
    """Return what a utility compares; of equal parts, texts have utility 1."""
    if utility == "edit_distance":
        return text.split()
    letters = "".join(text.split())
    return [Counter(letters[i : i + n] for i in range(len(letters) - n + 1)) for n in range(1, 7)]


def edit_similarity(first: str, second: str) -> float:
    longer = max(len(first.split()), len(second.split()), 1)
    return 1 - edit_distance(first.split(), second.split()) / longer


def sacrebleu_chrf(first: str, second: str) -> float:
    if not first.strip() and not second.strip():
        return 1.0  # equal texts; sacrebleu says 0
    return CHRF().sentence_score(first, [second]).score / 100


utilities_by_definition = pytest.mark.parametrize(
    ("utility", "definition"), [("edit_distance", edit_similarity), ("chrf", sacrebleu_chrf)]
)
compared_utilities = pytest.mark.parametrize("utility", ["edit_distance", "chrf"])


@utilities_by_definition
@given(TEXTS, TEXTS)
def test_utilities_are_those_of_the_field(
    utility: Utility, definition: Callable[[str, str], float], first: str, second: str
) -> None:
    candidates, references = [first, "x"], [second, "a", first]
    table = utilities(utility, candidates, references)
    expected = [[definition(text, reference) for reference in references] for text in candidates]
    np.testing.assert_allclose(table, expected, atol=1e-12)


@compared_utilities
@given(TEXTS)
def test_the_utility_of_the_right_text_is_1(utility: Utility, text: str) -> None:
    assert utilities(utility, [text], [text]) == pytest.approx(1)


@compared_utilities
@given(TEXTS, TEXTS)
def test_utilities_of_other_texts_stay_below_their_limit(
    utility: Utility, first: str, second: str
) -> None:
    if compared_parts(utility, first) != compared_parts(utility, second):
        limit = most_utility(utility, second)
        assert utilities(utility, [first], [second])[0, 0] <= limit + 1e-12


class TestChrfOfLongTexts:
    """Two texts with the same n-grams of up to five characters, of which one of six differs."""

    MIDDLE = "".join(map(chr, range(200, 226)))
    FIRST = f"wxyz{MIDDLE}wxyzbwxyz"
    SECOND = f"wxyzbwxyz{MIDDLE}wxyz"
    LENGTH = len(FIRST)

    @pytest.fixture
    def chrf(self) -> float:
        return float(utilities("chrf", [self.FIRST], [self.SECOND])[0, 0])

    def test_is_the_mean_of_six_orders(self, chrf: float) -> None:
        of_six_characters = self.LENGTH - 5
        assert chrf == pytest.approx(1 - 1 / (6 * of_six_characters))

    def test_stays_below_its_limit(self, chrf: float) -> None:
        assert chrf <= most_utility("chrf", self.SECOND)

    def test_is_more_than_with_one_character_more(self, chrf: float) -> None:
        """So the limit cannot be that of texts of other lengths."""
        n = self.LENGTH
        precision, recall = n / (n + 1), 1.0
        assert chrf > 5 * precision * recall / (4 * precision + recall)


# An output that shares three of four tokens with each of the others, which share two.
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


class TestMoreTextsThanAreCompared:
    TEXTS: ClassVar = {f"{number}": 1 / 4 for number in range(4)}

    @pytest.fixture(autouse=True)
    def three_are_compared(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("onmt_entmax.search.mbr.MOST_TEXTS", 3)

    def test_the_least_probable_count_as_not_listed(self) -> None:
        decision = decide("edit_distance", self.TEXTS, left=0, slack=0, bound=0)
        assert (len(decision.texts), decision.slack, decision.level) == (3, 0.25, "none")

    def test_exact_match_compares_any_number(self) -> None:
        assert len(decide("exact_match", self.TEXTS, left=0, slack=0, bound=0).texts) == 4
