"""Minimum Bayes risk: utilities, decisions by hand, and what each level claims."""

import functools
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics import CHRF

from onmt_entmax.report.mbr import decide_record
from onmt_entmax.search import decide
from onmt_entmax.search.mbr import _most, utilities

TEXTS = st.lists(st.sampled_from(["a", "b", "ab", "c "]), max_size=9).map(" ".join)


def parts(utility: str, text: str) -> object:
    """What a utility compares."""
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
        same = first[i - 1] == second[j - 1]
        return min(
            distance(i - 1, j - 1) + (not same), distance(i - 1, j) + 1, distance(i, j - 1) + 1
        )

    return distance(len(first), len(second))


@given(TEXTS, TEXTS)
def test_utilities_are_those_of_the_field_and_stay_below_their_limit(first, second) -> None:
    edits = edit_distance(first.split(), second.split())
    longer = max(len(first.split()), len(second.split()), 1)
    wanted = {
        "edit_distance": 1 - edits / longer,
        "chrf": CHRF().sentence_score(first, [second]).score / 100,
    }
    if not first.strip() and not second.strip():
        wanted["chrf"] = 1.0  # equal texts; sacrebleu says 0
    for utility, value in wanted.items():
        found = utilities(utility, [first, "x"], [second, "a", first])
        assert found.shape == (2, 3)
        assert found[0, 0] == pytest.approx(value, abs=1e-12)
        assert found[0, 2] == pytest.approx(1)
        if parts(utility, first) != parts(utility, second):
            assert found[0, 0] <= _most(utility, second) + 1e-12


def test_chrf_of_long_texts_that_differ_in_one_order_of_ngrams() -> None:
    """All n-grams of up to five characters are the same, and one of six is not."""
    other = "".join(map(chr, range(200, 226)))
    first, second = f"wxyz{other}wxyzbwxyz", f"wxyzbwxyz{other}wxyz"
    found = float(utilities("chrf", [first], [second])[0, 0])
    assert found == pytest.approx(1 - 1 / (6 * 34))
    # More than a text of another length could have.
    assert 1 - 1 / (5 * 39 + 1) < found <= _most("chrf", second)


def test_the_middle_wins_by_expected_utility() -> None:
    texts = {"a b c d": 0.4, "a x c e": 0.3, "a b c e": 0.3}
    assert decide("exact_match", texts, 0, 0, 0).texts[0] == "a b c d"
    found = decide("edit_distance", texts, 0, 0, 0)
    assert found.texts[0] == "a b c e"
    assert found.expected[0] == pytest.approx(0.4 * 3 / 4 + 0.3 * 3 / 4 + 0.3)
    assert (found.level, found.slack) == ("exact", 0)


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
    found = decide("edit_distance", texts, 0.0, 0.0, 0.0)
    assert (len(found.texts), found.slack, found.level) == (3, 0.25, "none")
    assert len(decide("exact_match", texts, 0.0, 0.0, 0.0).texts) == 4


def test_a_bound_that_underflows_is_not_zero() -> None:
    """Another output may be more probable than the one found; both are rounded to 0."""
    record = {"certificate": "none", "bound": 0.0, "finished": 1, "excluded": 0.0}
    record |= {"hypotheses": [{"text": "a", "prob": 0.0}]}
    assert decide_record("exact_match", record).level == "found"
    whole = {**record, "certificate": "exhaustive"}
    assert decide_record("exact_match", whole).level == "exact"
