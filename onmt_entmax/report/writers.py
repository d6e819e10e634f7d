"""Write translations, the exactness report and its summary."""

import json
from dataclasses import replace
from pathlib import Path
from typing import IO

from onmt_entmax.files import is_stream
from onmt_entmax.report.answer_records import answer_record
from onmt_entmax.report.answers import Answer
from onmt_entmax.report.output_lines import (
    one_line,
    output_alignments,
    output_scores,
    output_texts,
)
from onmt_entmax.report.sample_summary import SampleSummary
from onmt_entmax.report.summary import Summary


def summary_of(report: Path | None) -> Path | None:
    """Return the file of a report's summary; None without a report, or if that is no file."""
    if report is None or is_stream(report) or report.is_dir():
        return None
    return report.with_name(f"{report.name}.summary.json")


class AnswerWriter:
    """Writes answers to the output file and the exactness report.

    Args:
        output: file of `n_best` lines for each sentence.
        report: file of JSON lines, or None.
        n_best: hypotheses written for each sentence.
        alignments: file of their alignments, a line each, or None.
        abstain: outputs of less probability are replaced by empty lines; the report keeps them.
        scored: each output is followed by a tab and its score.
        sampled: whether the answers are samples, not those of searches.

    Attributes:
        summary: of the answers so far.
    """

    def __init__(
        self,
        output: IO[str],
        report: IO[str] | None,
        n_best: int,
        alignments: IO[str] | None = None,
        abstain: float = 0.0,
        scored: bool = False,
        sampled: bool = False,
    ) -> None:
        self._output = output
        self._report = report
        self._n_best = n_best
        self._alignments = alignments
        self._abstain = abstain
        self._scored = scored
        self.summary: Summary | SampleSummary = SampleSummary() if sampled else Summary()

    def write(self, answer: Answer) -> None:
        """Write one answer, in the order of the input."""
        if self._abstain and answer.result is not None and answer.prob < self._abstain:
            answer = replace(answer, abstained=True)
        self._output.writelines(f"{line}\n" for line in self._lines(answer))
        if self._alignments is not None:
            self._alignments.writelines(
                f"{line}\n" for line in output_alignments(answer, self._n_best)
            )
        if self._report is not None:
            record = json.dumps(answer_record(answer), ensure_ascii=False, allow_nan=False)
            self._report.write(f"{record}\n")
        self.summary.add(answer)

    def _lines(self, answer: Answer) -> list[str]:
        """Return the lines of the output file, without their ends."""
        texts = map(one_line, output_texts(answer, self._n_best))
        if not self._scored:
            return list(texts)
        return [
            text if score is None else f"{text}\t{score}"
            for text, score in zip(texts, output_scores(answer, self._n_best), strict=True)
        ]
