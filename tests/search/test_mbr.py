"""Minimum Bayes risk: utilities, decisions by hand, and what each level claims."""

import functools
from collections import Counter
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics import CHRF

from onmt_entmax.report.mbr import decide_record
from onmt_entmax.search import decide
from onmt_entmax.search.mbr import Utility, _most, utilities

TEXTS = st.lists(st.sampled_from(["a", "b", "ab", "c "]), max_size=9).map(" ".join)


def compared_parts(utility: str, text: str) -> object:
    """Return what a utility compares."""
    if utility == "edit_distance":
        return text.split()
    letters = "".join(text.split())
    return [Counter(letters[i : i + n] for i in range(len(letters) - n + 1)) for n in range(1, 7)]


def edit_distance(first: Sequence[str], second: Sequence[str]) -> int:
    """Levenshtein's distance by its recursive definition."""

    @functools.cache
    def distance(i: int, j: int) -> int:
        if not i or not j:
            return i + j
        substitution = 0 if first[i - 1] == second[j - 1] else 1
        return min(
            distance(i - 1, j - 1) + substitution, distance(i - 1, j) + 1, distance(i, j - 1) + 1
        )

    return distance(len(first), len(second))


def edit_similarity(first: str, second: str) -> float:
    longer = max(len(first.split()), len(second.split()), 1)
    return 1 - edit_distance(first.split(), second.split()) / longer


def sacrebleu_chrf(first: str, second: str) -> float:
    if not first.strip() and not second.strip():
        return 1.0  # equal texts; sacrebleu says 0
    return CHRF().sentence_score(first, [second]).score / 100


kinds = pytest.mark.parametrize(
    ("utility", "definition"), [("edit_distance", edit_similarity), ("chrf", sacrebleu_chrf)]
)


@kinds
@given(TEXTS, TEXTS)
def test_utilities_are_those_of_the_field(
    utility: Utility, definition: Callable[[str, str], float], first: str, second: str
) -> None:
    table = utilities(utility, [first, "x"], [second, "a", first])
    assert table.shape == (2, 3)
    assert table[0, 0] == pytest.approx(definition(first, second), abs=1e-12)
    assert table[0, 2] == pytest.approx(1)


@kinds
@given(TEXTS, TEXTS)
def test_utilities_of_other_texts_stay_below_their_limit(
    utility: Utility, definition: object, first: str, second: str
) -> None:
    if compared_parts(utility, first) != compared_parts(utility, second):
        assert utilities(utility, [first], [second])[0, 0] <= _most(utility, second) + 1e-12


def test_chrf_of_long_texts_that_differ_in_one_order_of_ngrams() -> None:
    """All n-grams of up to five characters are the same, and one of six is not."""
    middle = "".join(map(chr, range(200, 226)))
    first, second = f"wxyz{middle}wxyzbwxyz", f"wxyzbwxyz{middle}wxyz"
    chrf = float(utilities("chrf", [first], [second])[0, 0])
    assert chrf == pytest.approx(1 - 1 / (6 * 34))
    # More than a text of another length could have.
    assert 1 - 1 / (5 * 39 + 1) < chrf <= _most("chrf", second)


def test_the_middle_wins_by_expected_utility() -> None:
    texts = {"a b c d": 0.4, "a x c e": 0.3, "a b c e": 0.3}
    decision = decide("edit_distance", texts, left=0, slack=0, bound=0)
    assert decision.texts[0] == "a b c e"
    assert decision.expected[0] == pytest.approx(0.4 * 3 / 4 + 0.3 * 3 / 4 + 0.3)
    assert (decision.level, decision.slack) == ("exact", 0)


def test_the_most_probable_text_wins_by_exact_match() -> None:
    texts = {"a b c d": 0.4, "a x c e": 0.3, "a b c e": 0.3}
    assert decide("exact_match", texts, left=0, slack=0, bound=0).texts[0] == "a b c d"


@pytest.mark.parametrize(
    ("left", "level"),
    [(0.0, "exact"), (0.01, "proven"), (0.2, "found"), (0.6, "none")],
)
def test_levels_by_hand(left: float, level: str) -> None:
    texts = {"a b": 0.9 * (1 - left), "c d": 0.1 * (1 - left)}
    assert decide("edit_distance", texts, left, 0, left).level == level


@pytest.mark.parametrize(
    ("slack", "bound", "level"),
    [
        (0.0, 0.2, "proven"),
        (0.0, 0.4, "proven"),  # a tie with an output that was not found
        (0.0, 0.5, "found"),
        (0.1, 0.2, "proven"),
        (0.3, 0.2, "none"),
    ],
)
def test_exact_match_uses_the_bounds_of_the_search(slack, bound, level) -> None:
    assert decide("exact_match", {"a": 0.4, "b": 0.2}, 0.4, slack, bound).level == level


def test_a_tie_of_two_texts_is_proven() -> None:
    assert decide("exact_match", {"a": 0.4, "b": 0.4}, 0.2, 0.0, 0.2).level == "proven"


def test_of_equally_good_texts_the_more_probable_is_first() -> None:
    assert decide("chrf", {"a b": 0.4, "ab": 0.6}, 0, 0, 0).texts == ("ab", "a b")


def test_the_least_probable_of_many_texts_count_as_not_listed(monkeypatch) -> None:
    monkeypatch.setattr("onmt_entmax.search.mbr._MOST_TEXTS", 3)
    texts = {f"{n}": 1 / 4 for n in range(4)}
    decision = decide("edit_distance", texts, left=0.0, slack=0.0, bound=0.0)
    assert (len(decision.texts), decision.slack, decision.level) == (3, 0.25, "none")


def test_exact_match_compares_any_number_of_texts(monkeypatch) -> None:
    monkeypatch.setattr("onmt_entmax.search.mbr._MOST_TEXTS", 3)
    texts = {f"{n}": 1 / 4 for n in range(4)}
    assert len(decide("exact_match", texts, left=0.0, slack=0.0, bound=0.0).texts) == 4


@pytest.mark.parametrize(("certificate", "level"), [("none", "found"), ("exhaustive", "exact")])
def test_a_bound_that_underflows_is_not_zero(certificate: str, level: str) -> None:
    """Another output may be more probable than the one found; both are rounded to 0."""
    record = {
        "certificate": certificate,
        "bound": 0.0,
        "finished": 1,
        "excluded": 0.0,
        "hypotheses": [{"text": "a", "prob": 0.0}],
    }
    assert decide_record("exact_match", record).level == level
