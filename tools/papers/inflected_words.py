"""The words of a data set of inflection, with the predictions of an exactness report."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from onmt_entmax.errors import UserError
from onmt_entmax.files import read_aligned
from onmt_entmax.report.measures import is_right
from onmt_entmax.report.reading import read_report
from onmt_entmax.report.records import Record, level_of
from onmt_entmax.strings.languages import language_of_line
from onmt_entmax.strings.task import INFLECTION
from onmt_entmax.strings.units import decode_word


class Word(NamedTuple):
    """A line of a data set, and what a model predicted for it.

    Attributes:
        language: name of the language.
        tags: tags of the inflected form.
        lemma: the lemma.
        form: the right form.
        prediction: the best form of the model; empty if it has none.
        level: certificate of the prediction: "only" if the model excludes all other forms, else
            the level of the report; "none" without a report.
        probability: probability of the prediction; 0 if there is none.
        right: whether the prediction is the right form.
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
        report: exactness report of the sources; None: no word has a prediction.

    Raises:
        UserError: a file cannot be read, a source has no language, or the files do not belong
            together.
    """
    source, target = (prefix.with_name(f"{prefix.name}{end}") for end in (".src", ".tgt"))
    lines, references = read_aligned(source, target)
    for number, line in enumerate(lines, 1):
        language_of_line(source, number, line)  # refuses a source without language, by its line
    records: list[Record | None] = [None] * len(lines)
    if report is not None:
        records = _records_of(report, source, lines)
    return [_word(*row) for row in zip(lines, references, records, strict=True)]


def _records_of(report: Path, source: Path, lines: list[str]) -> list[Record | None]:
    """Return the record of each line of a source.

    Raises:
        UserError: the report cannot be read, or is of other lines.
    """
    records = list(read_report(report))
    if [record["source"] for record in records] != lines:
        raise UserError(f"{report}: not of {source}")
    return [*records]


def _word(line: str, reference: str, record: Record | None) -> Word:
    """Return the word of a line, with the prediction of its record.

    Args:
        line: tokens of the source, separated by spaces.
        reference: tokens of the right form, separated by spaces.
        record: record of the exactness report; None: there is no prediction.
    """
    lemma, tags, language = INFLECTION.decode_source(line.split())
    text, probability, level = "", 0.0, "none"
    if record is not None:
        level = level_of(record)
        if record["hypotheses"]:
            best, *_ = record["hypotheses"]
            text, probability = best.get("text", ""), best.get("prob", 0.0)
    return Word(
        language=language,
        tags=tags,
        lemma=lemma,
        form=decode_word(reference.split()),
        prediction=decode_word(text.split()),
        level=level,
        probability=probability,
        right=is_right(reference, text),
    )
