"""Read the words that `evaluate` measures, and their predictions, from files of tokens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from onmt_entmax.errors import UserError, counted
from onmt_entmax.files import read_aligned, read_lines
from onmt_entmax.report.measures import correct_forms, is_right, nearest_form
from onmt_entmax.strings.languages import language_of_line


@dataclass(frozen=True)
class Words:
    """The words to predict.

    Attributes:
        path: path of the sources.
        sources: lines of tokens.
        languages: language of each word.
        forms: the correct forms of each word, as tokens between single spaces.
    """

    path: Path
    sources: Sequence[str]
    languages: Sequence[str]
    forms: Sequence[Sequence[str]]

    @classmethod
    def read(cls, source: Path, reference: Path) -> Words:
        """Return the words of two files.

        Raises:
            UserError: a file cannot be read or has no lines, or the files differ in length.
        """
        sources, references = read_aligned(source, reference)
        if not sources:
            raise UserError(f"{source}: no lines")
        languages = [language_of_line(source, line, text) for line, text in enumerate(sources, 1)]
        forms = correct_forms(sources, [" ".join(line.split()) for line in references])
        return cls(source, sources, languages, forms)

    def are_right(self, predictions: Sequence[str]) -> list[bool]:
        """Return for each word whether its prediction is one of its correct forms."""
        nearest = map(nearest_form, self.forms, predictions)
        return list(map(is_right, nearest, predictions))

    def several_forms_text(self) -> str:
        """Return a text that says how many words have several correct forms; empty if none has."""
        several = sum(len(forms) > 1 for forms in self.forms)
        if not several:
            return ""
        return f"words with several correct forms: {several:,} of {len(self.forms):,}"


@dataclass(frozen=True)
class WordPredictions:
    """Predictions of words, read from a file that `translate -n_best N` wrote.

    Attributes:
        path: path of the file.
        lines: tokens between single spaces, `nbest` lines for each word, the best first.
        nbest: number of lines of each word; a word with fewer predictions ends with blank lines.
    """

    path: Path
    lines: Sequence[str]
    nbest: int

    @property
    def first(self) -> list[str]:
        """The first prediction of each word."""
        return list(self.lines[:: self.nbest])

    def lists(self) -> Iterator[list[str]]:
        """Yield the predictions of each word, without blank lines after the first prediction."""
        for start in range(0, len(self.lines), self.nbest):
            first, *others = self.lines[start : start + self.nbest]
            yield [first, *filter(None, others)]


def read_predictions(path: Path, words: Words, nbest: int) -> WordPredictions:
    """Return the predictions in a file.

    Args:
        path: path of the file.
        words: words that are predicted.
        nbest: number of lines of each word.

    Raises:
        UserError: the file cannot be read, has another number of lines, or is not a file of tokens.
    """
    lines = list(read_lines(path))
    for line_number, line in enumerate(lines, 1):
        if "\t" in line or line.startswith('{"'):
            raise UserError(
                f"{path}:{line_number}: expected tokens between spaces, as `onmt-entmax translate` "
                "writes to -output, not lines of `inflect` or of a report"
            )
    needed = nbest * len(words.sources)
    if len(lines) != needed:
        raise UserError(
            f"{path}: {counted(len(lines), 'line')}, but there must be {needed:,} for the lines of "
            f"{words.path} (times --nbest)"
        )
    return WordPredictions(path, [" ".join(line.split()) for line in lines], nbest)
