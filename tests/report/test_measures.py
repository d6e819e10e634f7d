"""Accuracy and Levenshtein distance of the shared tasks, in small cases by hand."""

import pytest

from onmt_entmax.report.measures import (
    WordScore,
    correct_forms,
    is_right,
    nearest_form,
    score_by_language,
)


def test_every_language_counts_the_same_in_the_average() -> None:
    languages = ["big"] * 4 + ["small"]
    references = ["a a", "b b", "c c", "d d", "e e"]
    predictions = ["a a", "b b", "c c", "d x", "x x"]
    scores = score_by_language(languages, references, predictions)
    assert scores.languages == {"big": WordScore(4, 0.75, 0.25), "small": WordScore(1, 0.0, 2.0)}
    assert scores.average == WordScore(5, 0.375, 1.125)


def test_tokens_are_compared_and_not_the_words_that_they_spell() -> None:
    scores = score_by_language(["x"] * 2, ["t s a", "t s a"], ["ts a", " t s  a"])
    assert scores.average == WordScore(2, 0.5, 1.0)


def test_an_unknown_token_is_never_right() -> None:
    assert is_right("a b", "a b")
    assert not is_right("a <unk>", "a <unk>")


DREAMED, DREAMT, RAN = (" ".join(word) for word in ("dreamed", "dreamt", "ran"))


def test_all_references_of_a_source_are_correct_forms() -> None:
    """Once each, in the order in which they come first."""
    sources = ["dream PST", "run PST", "dream PST", "dream PST"]
    forms = correct_forms(sources, [DREAMED, RAN, DREAMT, DREAMED])
    assert forms == [(DREAMED, DREAMT), (RAN,), (DREAMED, DREAMT), (DREAMED, DREAMT)]


@pytest.mark.parametrize(
    ("forms", "prediction", "nearest"),
    [
        pytest.param((DREAMED, DREAMT), DREAMT, DREAMT, id="a correct form"),
        pytest.param((DREAMED, DREAMT), "d r e a m s", DREAMT, id="one edit rather than two"),
        pytest.param((DREAMED, DREAMT), "d r e a m e z", DREAMED, id="another one is nearer"),
        pytest.param((RAN,), DREAMT, RAN, id="only one form"),
    ],
)
def test_a_prediction_is_compared_with_the_nearest_correct_form(
    forms: tuple[str, ...], prediction: str, nearest: str
) -> None:
    assert nearest_form(forms, prediction) == nearest


def test_lists_that_do_not_match_are_refused() -> None:
    with pytest.raises(ValueError, match="shorter"):
        score_by_language(["x", "x"], ["a", "b"], ["a"])
