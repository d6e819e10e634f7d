"""Words of a data set of inflection, with the predictions of an exactness report."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from onmt_entmax.errors import UserError
from onmt_entmax.files import read_aligned
from onmt_entmax.report.measures import is_right
from onmt_entmax.report.reading import read_report
from onmt_entmax.report.records import is_only
from onmt_entmax.strings.languages import language_of_line
from onmt_entmax.strings.task import INFLECTION
from onmt_entmax.strings.units import decode_word

_NO_RECORD: Mapping[str, Any] = {"hypotheses": [], "certificate": "none"}


class Word(NamedTuple):
    """A word of the development set.

    Attributes:
        language: of the word.
        tags: of the form.
        lemma: of the word.
        form: that is right.
        prediction: the best form of a model; empty: none.
        level: certificate of the prediction: "only" for a single form, else that of the report.
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
        language_of_line(source, number, line)  # refuses a line without one
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
