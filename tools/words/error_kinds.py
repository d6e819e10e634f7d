"""Kinds of inflected words and of errors, for `errors_inflection.py`.

A kind is a name after a number, which says where it stands in a table.
"""

from __future__ import annotations

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from onmt_entmax.reports.metrics import edit_distance


@dataclass(frozen=True)
class Word:
    """A word of the development set, what was predicted for it, and what was proven.

    Attributes:
        level: a level of a certificate, or `only` where one form has all the probability.
        prob: the probability of the prediction; 0 where the search has found no end.
    """

    language: str
    tags: tuple[str, ...]
    lemma: str
    form: str
    prediction: str
    level: str
    prob: float

    @property
    def right(self) -> bool:
        """Whether the form was predicted exactly."""
        return self.form == self.prediction


@dataclass
class Training:
    """What training showed of each language."""

    size: Counter[str] = field(default_factory=Counter)
    tags: Counter[tuple[str, tuple[str, ...]]] = field(default_factory=Counter)
    characters: set[str] = field(default_factory=set)
    own_characters: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    forms: dict[tuple[str, str], set[str]] = field(default_factory=lambda: defaultdict(set))

    def add(self, language: str, tags: tuple[str, ...], lemma: str, form: str) -> None:
        """Count one training pair."""
        self.size[language] += 1
        self.tags[language, tags] += 1
        self.characters.update(lemma, form)
        self.own_characters[language].update(lemma, form)
        self.forms[language, lemma].add(form)


def character_kind(word: Word, training: Training) -> str:
    """Whether lemma and form have characters that training has not shown."""
    used = set(word.lemma) | set(word.form)
    if used - training.characters:
        return "2 one that no language has in training"
    if used - training.own_characters[word.language]:
        return "1 one that its language has not in training"
    return "0 all known in its language"


def tags_kind(word: Word, training: Training) -> str:
    """How often the language's training has these very tags."""
    count = training.tags[word.language, word.tags]
    for number, (least, name) in enumerate(
        [(30, "30 or more"), (10, "10 to 29"), (3, "3 to 9"), (1, "1 or 2")]
    ):
        if count >= least:
            return f"{number} {name}"
    return "4 never"


def lemma_kind(word: Word, training: Training) -> str:
    """Whether training has the lemma, with other tags."""
    known = (word.language, word.lemma) in training.forms
    return "0 trained with other tags" if known else "1 not in training"


def certificate_kind(word: Word) -> str:
    """What was proven."""
    return {
        "only": "0 one form has all the probability",
        "exhaustive": "1 every possible form found, several",
        "optimal": "2 the most probable form proven",
    }.get(word.level, "3 nothing proven")


def probability_kind(word: Word) -> str:
    """How probable the prediction was; a model that knows what it knows is right as often."""
    for number, (least, name) in enumerate(
        [(0.9, "0.9 or more"), (0.7, "0.7 to 0.9"), (0.5, "0.5 to 0.7"), (0.3, "0.3 to 0.5")]
    ):
        if word.prob >= least:
            return f"{number} {name}"
    return "4 less than 0.3"


def error_kind(word: Word, training: Training | None = None) -> str:
    """What is wrong with a prediction; the first that fits.

    Args:
        word: an error.
        training: tells forms that belong to other tags of the lemma; without it none are told.
    """
    if not word.prediction:
        return "0 nothing predicted"
    if word.prediction == word.lemma:
        return "1 the lemma itself"
    if training and word.prediction in training.forms.get((word.language, word.lemma), ()):
        return "2 another form of the lemma that training has"
    if bare(word.prediction) == bare(word.form):
        return "3 accents and other marks only"
    if word.prediction.casefold() == word.form.casefold():
        return "4 small and capital letters only"
    distance = edit_distance(word.form, word.prediction)
    if distance > 2:
        return "9 three characters or more"
    if distance == 2:
        return "8 two characters"
    longer = len(word.prediction) - len(word.form)
    names = {
        -1: "5 one character missing",
        0: "6 one character another",
        1: "7 one character too many",
    }
    return names[longer]


def bare(word: str) -> str:
    """A word without accents and other combining marks."""
    decomposed = unicodedata.normalize("NFD", word)
    return "".join(c for c in decomposed if not unicodedata.combining(c))


def place_kind(word: Word) -> str:
    """In which third of the expected form the first difference is."""
    pairs = zip(word.form, word.prediction, strict=False)
    at = next((i for i, (a, b) in enumerate(pairs) if a != b), None)
    if at is None:
        at = min(len(word.form), len(word.prediction))
    third = min(2, 3 * at // max(len(word.form), 1))
    return ("0 first third", "1 second third", "2 last third or after the end")[third]


def confusions(words: Iterable[Word]) -> Counter[tuple[str, str]]:
    """What stands where something else was expected, in words that differ in one place."""
    counts: Counter[tuple[str, str]] = Counter()
    for word in words:
        start = sum(1 for _ in _common(word.form, word.prediction))
        end = sum(1 for _ in _common(word.form[start:][::-1], word.prediction[start:][::-1]))
        expected = word.form[start : len(word.form) - end]
        predicted = word.prediction[start : len(word.prediction) - end]
        if max(len(expected), len(predicted)) <= 3:
            counts[expected or "(nothing)", predicted or "(nothing)"] += 1
    return counts


def _common(first: Sequence[str], second: Sequence[str]) -> Iterator[str]:
    """The characters that two words begin with."""
    for one, other in zip(first, second, strict=False):
        if one != other:
            return
        yield one
