"""The official measures against definitions, bounds and small cases by hand."""

import functools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onmt_entmax.report.measures import Score, score, score_by_language
from onmt_entmax.search.mbr import edit_distance

WORDS = st.text(alphabet="abcé", max_size=7)


@pytest.mark.parametrize(
    ("first", "second", "distance"),
    [
        ("", "", 0),
        ("", "abc", 3),
        ("abc", "", 3),
        ("drawed", "drawn", 2),
        ("kitten", "sitting", 3),
        ("ab", "ba", 2),  # no transpositions
        ("e\u0301", "\u00e9", 2),  # code points as they are: one replaced, one removed
        (["d", "r", "<unk>"], ["d", "r", "a"], 1),  # symbols, not only characters
    ],
)
def test_edit_distance_by_hand(first, second, distance):
    assert edit_distance(first, second) == distance


@given(WORDS, WORDS)
def test_edit_distance_is_the_recursive_definition(first, second):
    @functools.cache
    def distance(i: int, j: int) -> int:
        if not i or not j:
            return i + j
        same = first[i - 1] == second[j - 1]
        return min(
            distance(i - 1, j - 1) + (not same), distance(i - 1, j) + 1, distance(i, j - 1) + 1
        )

    assert edit_distance(first, second) == distance(len(first), len(second))


def test_score_counts_words_and_characters():
    assert score(["drawn", "sang", "cut"], ["drawed", "sang", ""]) == Score(3, 1 / 3, (2 + 3) / 3)


def test_every_language_counts_the_same_in_the_average():
    languages = ["big"] * 4 + ["small"]
    references = ["aa", "bb", "cc", "dd", "ee"]
    predictions = ["aa", "bb", "cc", "dx", "xx"]
    scores = score_by_language(languages, references, predictions)
    assert scores.languages == {"big": Score(4, 0.75, 0.25), "small": Score(1, 0.0, 2.0)}
    assert scores.average == Score(5, 0.375, 1.125)


@given(
    st.lists(st.tuples(st.sampled_from("xyz"), WORDS, WORDS), min_size=1, max_size=12),
    st.randoms(use_true_random=False),
)
def test_order_does_not_matter_and_the_parts_make_the_whole(words, random):
    scores = score_by_language(*map(list, zip(*words, strict=True)))
    whole = score([word[1] for word in words], [word[2] for word in words])
    correct = sum(each.words * each.accuracy for each in scores.languages.values())
    assert correct == pytest.approx(whole.words * whole.accuracy)
    assert list(scores.languages) == sorted(scores.languages)
    random.shuffle(words)
    shuffled = score_by_language(*map(list, zip(*words, strict=True)))
    assert shuffled.average.accuracy == pytest.approx(scores.average.accuracy)
    assert shuffled.average.edit_distance == pytest.approx(scores.average.edit_distance)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: score(["a"], []), "1 reference but 0 predictions"),
        (lambda: score([], []), "no words"),
        (lambda: score_by_language([], [], []), "no words"),
        (lambda: score_by_language(["x"], ["a", "b"], ["a", "b"]), "1 language, 2 references"),
    ],
)
def test_lists_that_do_not_match_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
