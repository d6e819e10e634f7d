"""Calls of `onmt-entmax combine` for tests."""

from pathlib import Path
from typing import Any

from onmt_entmax.cli import combine as command
from onmt_entmax.report.reading import read_report
from tests.cli.tables import write_table
from tests.in_process import exit_status

Record = dict[str, Any]


def combine(*arguments: object) -> None:
    """Run the command in this process."""
    assert exit_status(command.main, [str(argument) for argument in arguments]) == 0


def average(folder: Path, *lines: str) -> Record:
    """Return the record of the average of reports of one line each, which is in `r.jsonl`."""
    paths = [write_table(folder / f"{number}.jsonl", line) for number, line in enumerate(lines, 1)]
    report = folder / "r.jsonl"
    combine("--reports", *paths, "--output", folder / "o", "--report", report)
    (record,) = read_report(report)
    return record
