"""Measure how good the outputs of a report are, if only the more certain ones are kept."""

from collections.abc import Callable, Sequence
from functools import partial

from onmt_entmax.report.coverage import CoverageCurve, coverage
from onmt_entmax.report.measures import is_right
from onmt_entmax.report.records import Record, output_of
from onmt_entmax.report.sacrebleu_metrics import make_metrics, quality_of


def with_references(records: Sequence[Record], references: Sequence[str]) -> list[Record]:
    """Return the records with two more fields: `reference`, and `right`, of the best output.

    Args:
        records: records of the report.
        references: one for each record.
    """
    return [
        {**record, "reference": reference, "right": is_right(reference, output_of(record).text)}
        for record, reference in zip(records, references, strict=True)
    ]


def coverage_curve(records: Sequence[Record], tokenizer: str | None) -> CoverageCurve:
    """Return the coverage curve for `write_page`.

    Each point has the quality of the outputs that remain, if those with a lower probability or a
    lesser certificate are left to a person.

    Args:
        records: records with references, as `with_references` returns them.
        tokenizer: tokeniser of sacrebleu, to measure BLEU; None: measure accuracy.
    """
    quality: Callable[[Sequence[int]], float]
    if tokenizer is None:
        measure = "Accuracy (%)"
        quality = partial(_accuracy, records)
    else:
        [(measure, metric)] = make_metrics(["bleu"], [tokenizer], lowercase=False)
        outputs = [output_of(record).text for record in records]
        references = [record["reference"] for record in records]
        quality = quality_of(metric, outputs, [references])
    return CoverageCurve(measure, coverage(records, quality))


def _accuracy(records: Sequence[Record], kept: Sequence[int]) -> float:
    """Return the percentage of right outputs among the records at these positions."""
    return 100 * sum(records[position]["right"] for position in kept) / len(kept)
