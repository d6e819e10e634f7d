"""Tables of the words of a development set by kind, and of the kinds of errors among them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from onmt_entmax.errors import counted
from tools.papers.error_kinds import KINDS, error_kind
from tools.papers.inflected_words import Word, read_words
from tools.papers.markdown import markdown_table
from tools.papers.text_table import Table


class Bins(NamedTuple):
    """Bins of a number.

    Attributes:
        least: the least value of each bin by its name, the largest first.
        below: name of the bin for values below all of these.
    """

    least: Mapping[str, float]
    below: str

    def name_of(self, value: float) -> str:
        """Return the name of the bin of a value."""
        return next((name for name, least in self.least.items() if value >= least), self.below)

    def names(self) -> list[str]:
        """Return all names, those of large values first."""
        return [*self.least, self.below]


PROBABILITIES = Bins(
    {"0.9 or more": 0.9, "0.7 to 0.9": 0.7, "0.5 to 0.7": 0.5, "0.3 to 0.5": 0.3},
    below="less than 0.3",
)
COUNTS = Bins({"30 or more": 30, "10 to 29": 10, "3 to 9": 3, "1 or 2": 1}, below="never")
CERTIFICATES = {
    "only": "one form has all the probability",
    "exhaustive": "several forms, all found",
    "optimal": "the most probable form proven",
    "none": "nothing proven",
}
ALL_KNOWN = "all known in its language"  # a kind of characters


def percent_right(words: Sequence[Word]) -> float:
    """Return the percentage of right predictions; there must be at least one word."""
    return 100 * sum(word.right for word in words) / len(words)


class Characters:
    """The characters of training, by language.

    Args:
        training: words whose lemmas and forms have them.
    """

    def __init__(self, training: Sequence[Word]) -> None:
        self._by_language: dict[str, set[str]] = {}
        for word in training:
            self._by_language.setdefault(word.language, set()).update(word.lemma, word.form)
        self._all = set[str]().union(*self._by_language.values())

    def kind(self, word: Word) -> str:
        """Return whether training has all characters of a word."""
        characters = {*word.lemma, *word.form}
        if characters <= self._by_language.get(word.language, set()):
            return ALL_KNOWN
        return "unseen in any language" if characters - self._all else "unseen in its language"


def word_errors(train: Path, dev: Path, report: Path, worst_languages: int) -> str:
    """Return a summary and all tables, in Markdown.

    Args:
        train: path of the training files without .src and .tgt.
        dev: path of the development files without .src and .tgt.
        report: exactness report of the development files.
        worst_languages: number of languages to list, the least accurate first.

    Raises:
        UserError: a file cannot be read, or they do not belong together.
    """
    words = read_words(dev, report)  # at least one, since an empty report is refused
    wrong = [word for word in words if not word.right]
    tables = [*_tables(words, read_words(train), worst_languages), _errors_by_kind(wrong)]
    summary = (
        f"{len(words)} words: {percent_right(words):.2f} % right, {counted(len(wrong), 'error')}."
    )
    return "\n\n".join([summary, *map(markdown_table, tables)])


def _tables(words: Sequence[Word], training: Sequence[Word], worst_languages: int) -> list[Table]:
    """Return the tables of words by each property.

    Args:
        words: words of the development set.
        training: words of the training set.
        worst_languages: see `word_errors`.
    """
    rows_with_tags = Counter((word.language, word.tags) for word in training)

    def certificate(word: Word) -> str:
        return CERTIFICATES[word.level]

    def probability(word: Word) -> str:
        return PROBABILITIES.name_of(word.probability)

    def rows_with_these_tags(word: Word) -> str:
        return COUNTS.name_of(rows_with_tags[word.language, word.tags])

    by_language = grouped(words, "language", lambda word: word.language)
    return [
        grouped(words, "certificate", certificate, [*CERTIFICATES.values()]),
        grouped(words, "probability", probability, PROBABILITIES.names()),
        grouped(words, "training rows with these tags", rows_with_these_tags, COUNTS.names()),
        grouped(words, "characters", Characters(training).kind, [ALL_KNOWN]),
        replace(by_language, rows=by_language.rows[:worst_languages]),
    ]


def grouped(
    words: Sequence[Word], title: str, kind: Callable[[Word], str], order: Sequence[str] = ()
) -> Table:
    """Return a table of words by kind: number, accuracy and share of all errors.

    Args:
        words: words of the development set.
        title: heading of the column of kinds.
        kind: returns the kind of a word.
        order: kinds that come first, in this order; without it, the least accurate come first.
    """
    groups: dict[str, list[Word]] = {name: [] for name in order}
    for word in words:
        groups.setdefault(kind(word), []).append(word)
    groups = {name: group for name, group in groups.items() if group}
    names = list(groups)
    if not order:  # rounded as printed: groups that look equally accurate keep their order
        names.sort(key=lambda name: round(percent_right(groups[name]), 1))
    all_errors = max(sum(not word.right for word in words), 1)
    rows = []
    for name in names:
        group = groups[name]
        share = 100 * sum(not word.right for word in group) / all_errors
        rows.append([name, str(len(group)), f"{percent_right(group):.1f}", f"{share:.1f}"])
    return Table([title, "words", "right (%)", "share of errors (%)"], rows)


def _errors_by_kind(wrong: Sequence[Word]) -> Table:
    """Return a table of what is wrong with words."""
    kinds = Counter(map(error_kind, wrong))
    rows = [
        [kind, str(kinds[kind]), f"{100 * kinds[kind] / max(len(wrong), 1):.1f}"] for kind in KINDS
    ]
    return Table(["kind of error", "errors", "share (%)"], rows)
