"""Write answers to the files of a translation: outputs, exactness report and alignments.

The answers are also counted; the caller writes the counts, to the file that `summary_path` names.
"""

import json
from dataclasses import dataclass, replace
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


def summary_path(report: Path | None) -> Path | None:
    """Return the path of a report's summary; None if there is no report, or it is not a file."""
    if report is None or is_stream(report) or report.is_dir():
        return None
    return report.with_name(f"{report.name}.summary.json")


@dataclass(frozen=True)
class OutputForm:
    """The lines that the file of outputs has for each sentence.

    Attributes:
        n_best: number of lines: the best hypotheses first, and blank lines for missing ones.
        abstain: least probability of the best output. If it has less, all lines are blank; the
            report keeps the outputs.
        scored: whether a tab and its score follow each output.
    """

    n_best: int = 1
    abstain: float = 0.0
    scored: bool = False


class AnswerWriter:
    """Writes answers, and counts them.

    Args:
        output: file of outputs.
        form: form of the outputs.
        summary: counts the answers; a `SampleSummary` if they are samples.
        report: file of the exactness report, a line of JSON for each sentence; None: not written.
        alignments: file of alignments, a line for each line of the outputs; None: not written.
    """

    def __init__(
        self,
        output: IO[str],
        form: OutputForm,
        summary: Summary | SampleSummary,
        *,
        report: IO[str] | None = None,
        alignments: IO[str] | None = None,
    ) -> None:
        self._output = output
        self._form = form
        self._summary = summary
        self._report = report
        self._alignments = alignments

    def write(self, answer: Answer) -> None:
        """Write the answer to the next sentence of the input."""
        n_best, abstain = self._form.n_best, self._form.abstain
        if abstain and answer.result is not None and answer.prob < abstain:
            answer = replace(answer, abstained=True)
        self._output.writelines(f"{line}\n" for line in self._output_lines(answer))
        if self._alignments is not None:
            lines = output_alignments(answer, n_best)
            self._alignments.writelines(f"{line}\n" for line in lines)
        if self._report is not None:
            record = json.dumps(answer_record(answer), ensure_ascii=False, allow_nan=False)
            self._report.write(f"{record}\n")
        self._summary.add(answer)

    def _output_lines(self, answer: Answer) -> list[str]:
        """Return the lines of the file of outputs, without their ends."""
        n_best = self._form.n_best
        texts = map(one_line, output_texts(answer, n_best))
        if not self._form.scored:
            return list(texts)
        return [
            text if score is None else f"{text}\t{score}"
            for text, score in zip(texts, output_scores(answer, n_best), strict=True)
        ]
