"""Read the report and the scores of a part of an audit, which `part_checks` makes."""

from pathlib import Path

from onmt_entmax.cli.audit_parts import Part
from onmt_entmax.cli.audited_rows import AuditedRow
from onmt_entmax.errors import UserError, counted
from onmt_entmax.files import read_lines
from onmt_entmax.files.parsing import parse_json
from onmt_entmax.report.reading import read_report
from onmt_entmax.rules import Rule
from onmt_entmax.strings.task import StringTask

REPORT = "dev.report.jsonl"
"""The exactness report of `translate`, in the folder of a part: the forms that the model admits"""
SCORES = "scores.jsonl"
"""The output of `score`, in the folder of a part: the log-probabilities of the rows' own forms"""
_LOG_PROB = Rule(float, off=None)


def read_checked_rows(part: Part, task: StringTask) -> list[AuditedRow]:
    """Return the rows of a checked part, with the predictions of its model.

    Raises:
        UserError: the report or the scores of the part are cut or damaged.
    """
    count = len(part.held_out)
    records = read_report(part.folder / REPORT, count)
    scores = read_scores(part.folder / SCORES, count)
    checked = zip(part.held_out, scores, records, part.copies, strict=True)
    return [AuditedRow(row, task, score, record, copies) for row, score, record, copies in checked]


def read_scores(path: Path, count: int) -> list[float | None]:
    """Return the log-probabilities that `score` wrote; None stands for log(0).

    Args:
        path: file to read.
        count: number of lines that the file must have.

    Raises:
        UserError: the file cannot be read, or has another number of lines.
    """
    scores: list[float | None] = []
    for number, line in enumerate(read_lines(path), 1):
        try:
            scores.append(_log_prob(line))
        except UserError:
            raise UserError(
                f"{path}:{number}: cut or damaged; delete the file, and run again"
            ) from None
    if len(scores) != count:
        lines = f"{counted(len(scores), 'line')}, not {count:,}"
        raise UserError(f"{path}: cut or damaged, {lines}; delete the file, and run again")
    return scores


def _log_prob(line: str) -> float | None:
    """Return the log-probability in a line of `score`.

    Raises:
        UserError: the line is not JSON, or has no log-probability.
    """
    record = parse_json(line)
    if isinstance(record, dict) and "log_prob" in record and _LOG_PROB.fits(record["log_prob"]):
        log_prob: float | None = record["log_prob"]
        return log_prob
    raise UserError("no log-probability")
