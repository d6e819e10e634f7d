"""The outputs, records, alignments and summary that are written for three sentences."""

import io
import json
from typing import Any, NamedTuple

from onmt_entmax.report.answers import Answer
from onmt_entmax.report.summary import Summary
from onmt_entmax.report.writers import AnswerWriter, OutputForm
from tests.report.answers import answer


class Written(NamedTuple):
    """What an `AnswerWriter` wrote.

    Attributes:
        lines: the lines of the outputs, two for each sentence.
        records: the records of the report.
        alignment: the text of the alignments.
        summary: the summary, which counted the sentences.
    """

    lines: list[str]
    records: list[dict[str, Any]]
    alignment: str
    summary: Summary


def written(least_probability: float) -> Written:
    """Write a text of probability e^-1 + e^-2 = 0.503, a blank line, and an unfinished sentence.

    Args:
        least_probability: if the best output is less probable, no output is written (`-abstain`).
    """
    output, report, alignment = io.StringIO(), io.StringIO(), io.StringIO()
    form, summary = OutputForm(n_best=2, abstain=least_probability), Summary()
    writer = AnswerWriter(output, form, summary, report=report, alignments=alignment)
    for sentence in (answer("exhaustive", 2), Answer(1, " "), answer("none", unfinished="x")):
        writer.write(sentence)
    records = [json.loads(line) for line in report.getvalue().splitlines()]
    return Written(output.getvalue().splitlines(), records, alignment.getvalue(), summary)
