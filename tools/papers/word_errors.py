"""Tables of the words of a development set by kind, and of what is wrong with predictions."""

from __future__ import annotations

import argparse
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from rapidfuzz.distance import Levenshtein

from onmt_entmax.errors import counted
from tools.papers.dev_words import Word, read_words
from tools.papers.markdown import markdown_table

BANDS = ((0.9, "0.9 or more"), (0.7, "0.7 to 0.9"), (0.5, "0.5 to 0.7"), (0.3, "0.3 to 0.5"))
COUNTS = ((30, "30 or more"), (10, "10 to 29"), (3, "3 to 9"), (1, "1 or 2"))
CERTIFICATES = {
    "only": "one form has all the probability",
    "exhaustive": "several forms, all found",
    "optimal": "the most probable form proven",
    "none": "nothing proven",
}
Table = tuple[list[str], list[list[str]]]  # headings, rows

# --- kinds of errors -------------------------------------------------------------------------


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
    "small and capital letters only": lambda word: (
        word.prediction.casefold() == word.form.casefold()
    ),
    "one character": lambda word: distance(word) == 1,
    "two characters": lambda word: distance(word) == 2,
    "three characters or more": lambda word: True,
}


def error_kind(word: Word) -> str:
    """Return what is wrong with a wrong prediction, one of `KINDS`."""
    return next(kind for kind, fits in KINDS.items() if fits(word))


# --- kinds of words --------------------------------------------------------------------------


def band(value: float, bands: Sequence[tuple[float, str]], below: str) -> str:
    """Return the name of the first band whose least value is not above this one.

    Args:
        value: to find a band for.
        bands: least values with names, the largest first.
        below: the name if the value is below all bands.
    """
    return next((name for least, name in bands if value >= least), below)


def percent_right(words: Sequence[Word]) -> float:
    """Return the percentage of right predictions."""
    return 100 * sum(word.right for word in words) / len(words)


class Characters:
    """The characters of training, by language.

    Args:
        training: words whose lemmas and forms have them.
    """

    def __init__(self, training: Sequence[Word]) -> None:
        self._of_language: dict[str, set[str]] = {}
        for word in training:
            self._of_language.setdefault(word.language, set()).update(word.lemma, word.form)
        self._all = set[str]().union(*self._of_language.values())

    def kind(self, word: Word) -> str:
        """Return whether training has all characters of a word."""
        characters = {*word.lemma, *word.form}
        if characters <= self._of_language.get(word.language, set()):
            return "all known in its language"
        return "unseen in any language" if characters - self._all else "unseen in its language"


# --- the tables ------------------------------------------------------------------------------


def word_errors(options: argparse.Namespace) -> str:
    """Return the tables of `words`.

    Raises:
        UserError: a file cannot be read, or they do not belong together.
    """
    words = read_words(options.dev, options.report)
    training = read_words(options.train)
    tags = Counter((word.language, word.tags) for word in training)
    least = "less than 0.3"
    never = "never"

    def probability(word: Word) -> str:
        return band(word.probability, BANDS, least)

    def times_of_tags(word: Word) -> str:
        return band(tags[word.language, word.tags], COUNTS, never)

    bands = [*(name for _, name in BANDS), least]
    counts = [*(name for _, name in COUNTS), never]
    levels = [*CERTIFICATES.values()]
    all_known = ["all known in its language"]
    head, languages = grouped(words, "language", lambda word: word.language)
    wrong = [word for word in words if not word.right]
    tables = [
        grouped(words, "certificate", lambda word: CERTIFICATES[word.level], levels),
        grouped(words, "probability", probability, bands),
        grouped(words, "training rows with these tags", times_of_tags, counts),
        grouped(words, "characters", Characters(training).kind, all_known),
        (head, languages[: options.languages]),
        _errors_by_kind(wrong),
    ]
    summary = (
        f"{len(words)} words: {percent_right(words):.2f} % right, {counted(len(wrong), 'error')}."
    )
    return "\n\n".join([summary, *(markdown_table(*table) for table in tables)])


def grouped(
    words: Sequence[Word], title: str, kind: Callable[[Word], str], order: Sequence[str] = ()
) -> Table:
    """Return a table of words by kind: number, accuracy and share of errors.

    Args:
        words: of the development set.
        title: of the kinds.
        kind: of a word.
        order: kinds that come first, in this order; without it, the least accurate come first.
    """
    groups: dict[str, list[Word]] = {name: [] for name in order}
    for word in words:
        groups.setdefault(kind(word), []).append(word)
    groups = {name: group for name, group in groups.items() if group}
    names = list(groups)
    if not order:
        names.sort(key=lambda name: round(percent_right(groups[name]), 1))
    all_errors = max(sum(not word.right for word in words), 1)
    rows = []
    for name in names:
        group = groups[name]
        share = 100 * sum(not word.right for word in group) / all_errors
        rows.append([name, str(len(group)), f"{percent_right(group):.1f}", f"{share:.1f}"])
    return [title, "words", "right (%)", "share of errors (%)"], rows


def _errors_by_kind(wrong: Sequence[Word]) -> Table:
    """Return a table of what is wrong with words."""
    kinds = Counter(map(error_kind, wrong))
    rows = [
        [kind, str(kinds[kind]), f"{100 * kinds[kind] / max(len(wrong), 1):.1f}"] for kind in KINDS
    ]
    return ["kind of error", "errors", "share (%)"], rows
