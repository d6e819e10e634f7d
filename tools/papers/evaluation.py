"""Evaluation of a decoded text: the official measures of the shared task, or BLEU."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from sacrebleu.metrics import BLEU

from onmt_entmax.files import read_aligned
from onmt_entmax.report.measures import score_by_language
from onmt_entmax.strings.languages import language_of_line
from tools.papers.matrix import Cell, Job


class Texts(NamedTuple):
    """The lines of a decoded text; line n of each file belongs to line n of the others."""

    sources: list[str]
    references: list[str]
    predictions: list[str]


def texts_of(job: Job) -> Texts:
    """Return the decoded text of a training or ensemble.

    Raises:
        UserError: the files differ in length.
    """
    return Texts(*read_aligned(job.matrix.source, job.matrix.reference, job.output))


def sigmorphon(job: Job) -> dict[str, Any]:
    """Return the official measures: accuracy in percent and edit distance, averaged over languages.

    Raises:
        UserError: the files differ in length.
    """
    texts = texts_of(job)
    languages = [
        language_of_line(job.matrix.source, number, line)
        for number, line in enumerate(texts.sources, 1)
    ]
    scores = score_by_language(languages, texts.references, texts.predictions)
    return {
        "accuracy": round(100 * scores.average.accuracy, 4),
        "edit_distance": round(scores.average.edit_distance, 4),
        "languages": {
            language: round(100 * score.accuracy, 4) for language, score in scores.languages.items()
        },
    }


def tokenizer_of(cell: Cell) -> str:
    """Return the tokeniser of BLEU: the one that validations of the training use."""
    return str(cell.training.get("valid_bleu_tokenize", "13a"))


def bleu(job: Job) -> dict[str, Any]:
    """Return sacrebleu's BLEU and signature.

    Raises:
        UserError: the files differ in length.
    """
    texts = texts_of(job)
    metric = BLEU(tokenize=tokenizer_of(job.cell), force=True)
    value = metric.corpus_score(texts.predictions, [texts.references]).score
    return {"bleu": round(value, 4), "signature": str(metric.get_signature())}


class Evaluation(NamedTuple):
    """A way to evaluate decoded texts.

    Attributes:
        measure: returns the figures of a training or ensemble, by name.
        main: name of the figure by which cells are compared.
    """

    measure: Callable[[Job], dict[str, Any]]
    main: str


# By their names in matrix files.
EVALUATE: Mapping[str, Evaluation] = {
    "sigmorphon": Evaluation(sigmorphon, "accuracy"),
    "bleu": Evaluation(bleu, "bleu"),
}
