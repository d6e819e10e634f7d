"""Kinds of wrong predictions of an inflection model."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping

from rapidfuzz.distance import Levenshtein

from tools.papers.inflected_words import Word


def without_marks(text: str) -> str:
    """Return a text without accents and other combining marks."""
    decomposed = unicodedata.normalize("NFD", text)
    return "".join(character for character in decomposed if not unicodedata.combining(character))


def distance(word: Word) -> int:
    """Return how many characters the prediction is away from the form."""
    return Levenshtein.distance(word.form, word.prediction)


# What can be wrong with a prediction. The first that fits counts.
KINDS: Mapping[str, Callable[[Word], bool]] = {
    "nothing predicted": lambda word: not word.prediction,
    "the lemma itself": lambda word: word.prediction == word.lemma,
    "accents and other marks only": lambda word: (
        without_marks(word.prediction) == without_marks(word.form)
    ),
    "upper and lower case only": lambda word: word.prediction.casefold() == word.form.casefold(),
    "one character": lambda word: distance(word) == 1,
    "two characters": lambda word: distance(word) == 2,
    "three characters or more": lambda word: True,
}


def error_kind(word: Word) -> str:
    """Return what is wrong with a wrong prediction, one of `KINDS`."""
    return next(kind for kind, fits in KINDS.items() if fits(word))
