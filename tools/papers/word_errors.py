"""Words of a development set by kind, and what is wrong with their predictions."""

from __future__ import annotations

import argparse
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rapidfuzz.distance import Levenshtein

from onmt_entmax.errors import UserError
from onmt_entmax.files import read_aligned
from onmt_entmax.report.measures import is_right
from onmt_entmax.report.reading import read_report
from onmt_entmax.report.records import is_only
from onmt_entmax.strings.task import INFLECTION, language_of
from onmt_entmax.strings.units import decode_word
from tools.papers.markdown import markdown_table

BANDS = ((0.9, "0.9 or more"), (0.7, "0.7 to 0.9"), (0.5, "0.5 to 0.7"), (0.3, "0.3 to 0.5"))
COUNTS = ((30, "30 or more"), (10, "10 to 29"), (3, "3 to 9"), (1, "1 or 2"))
CERTIFICATES = {
    "only": "one form has all the probability",
    "exhaustive": "several forms, all found",
    "optimal": "the most probable form proven",
    "none": "nothing proven",
}
KINDS = (
    "nothing predicted",
    "the lemma itself",
    "accents and other marks only",
    "small and capital letters only",
    "one character",
    "two characters",
    "three characters or more",
)
_NO_RECORD: Mapping[str, Any] = {"hypotheses": [], "certificate": "none"}


class Word(NamedTuple):
    """A word of the development set.

    Attributes:
        language: of the word.
        tags: of the form.
        lemma: of the word.
        form: that is right.
        prediction: the best form of a model; empty: none.
        level: certificate of the prediction, a key of `CERTIFICATES`.
        probability: of the prediction.
        right: whether it is the form.
    """

    language: str
    tags: tuple[str, ...]
    lemma: str
    form: str
    prediction: str
    level: str
    probability: float
    right: bool


def read_words(prefix: Path, report: Path | None = None) -> list[Word]:
    """Return the words of a data set, with the predictions of a report.

    Args:
        prefix: path of the files without .src and .tgt.
        report: exactness report; without one, nothing is predicted.

    Raises:
        UserError: a file cannot be read, or they do not belong together.
    """
    source, target = (prefix.with_name(f"{prefix.name}{end}") for end in (".src", ".tgt"))
    lines, references = read_aligned(source, target)
    for number, line in enumerate(lines, 1):
        language_of(source, number, line)  # refuses a line without one
    if report is None:
        return [_word(*pair, _NO_RECORD) for pair in zip(lines, references, strict=True)]
    records = list(read_report(report))
    if [record["source"] for record in records] != lines:
        raise UserError(f"{report}: not of {source}")
    return [_word(*row) for row in zip(lines, references, records, strict=True)]


def _word(line: str, reference: str, record: Mapping[str, Any]) -> Word:
    """Return a word.

    Args:
        line: tokens of its source.
        reference: tokens of its form.
        record: of the exactness report.
    """
    lemma, tags, language = INFLECTION.decode_source(line.split())
    best = record["hypotheses"][0] if record["hypotheses"] else {}
    text = best.get("text", "")
    return Word(
        language=language,
        tags=tags,
        lemma=lemma,
        form=decode_word(reference.split()),
        prediction=decode_word(text.split()),
        level="only" if is_only(record) else record["certificate"],
        probability=best.get("prob", 0.0),
        right=is_right(reference, text),
    )


def error_kind(word: Word) -> str:
    """Return what is wrong with a prediction: the first of `KINDS` that fits."""
    distance = Levenshtein.distance(word.form, word.prediction)
    fits = {
        "nothing predicted": not word.prediction,
        "the lemma itself": word.prediction == word.lemma,
        "accents and other marks only": without_marks(word.prediction) == without_marks(word.form),
        "small and capital letters only": word.prediction.casefold() == word.form.casefold(),
        "one character": distance == 1,
        "two characters": distance == 2,
        "three characters or more": True,
    }
    return next(kind for kind in KINDS if fits[kind])


def without_marks(text: str) -> str:
    """Return a text without accents and other combining marks."""
    decomposed = unicodedata.normalize("NFD", text)
    return "".join(character for character in decomposed if not unicodedata.combining(character))


def band(value: float, bands: Sequence[tuple[float, str]], below: str) -> str:
    """Return the name of the first band whose least value is not above this one."""
    return next((name for least, name in bands if value >= least), below)


def percent_right(words: Sequence[Word]) -> float:
    """Return the percentage of right predictions."""
    return 100 * sum(word.right for word in words) / len(words)


class Characters:
    """The characters of training, by language."""

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


def grouped(
    words: Sequence[Word], title: str, kind: Callable[[Word], str], order: Sequence[str] = ()
) -> tuple[list[str], list[list[str]]]:
    """Return heading and rows of a table of words by kind: number, accuracy and share of errors.

    Args:
        words: of the development set.
        title: of the kinds.
        kind: of a word.
        order: kinds that come first, in this order; without it, the least accurate come first.
    """
    groups: dict[str, list[Word]] = {name: [] for name in order}
    for word in words:
        groups.setdefault(kind(word), []).append(word)
    all_errors = max(sum(not word.right for word in words), 1)
    rows = []
    for name, group in groups.items():
        if group:
            errors = sum(not word.right for word in group)
            share = f"{100 * errors / all_errors:.1f}"
            rows.append([name, str(len(group)), f"{percent_right(group):.1f}", share])
    if not order:
        rows.sort(key=lambda row: float(row[2]))
    return [title, "words", "right (%)", "share of errors (%)"], rows


def word_errors(options: argparse.Namespace) -> str:
    """Return the tables of `words`."""
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
    summary = f"{len(words)} words: {percent_right(words):.2f} % right, {len(wrong)} errors."
    return "\n\n".join([summary, *(markdown_table(*table) for table in tables)])


def _errors_by_kind(wrong: Sequence[Word]) -> tuple[list[str], list[list[str]]]:
    """Return heading and rows of a table of what is wrong with words."""
    kinds = Counter(map(error_kind, wrong))
    rows = [
        [kind, str(kinds[kind]), f"{100 * kinds[kind] / max(len(wrong), 1):.1f}"] for kind in KINDS
    ]
    return ["kind of error", "errors", "share (%)"], rows
