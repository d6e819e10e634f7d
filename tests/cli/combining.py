"""Calls of `onmt-entmax combine` for tests."""

import json
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
    """Return the record of the average of reports of one line each; all files are in a folder."""
    paths = [write_table(folder / f"{number}.jsonl", line) for number, line in enumerate(lines, 1)]
    report = folder / "average.jsonl"
    combine("--reports", *paths, "--output", folder / "average.out", "--report", report)
    (record,) = read_report(report)
    return record


def summary_of_average(folder: Path) -> Record:
    """Return the summary that the command wrote beside the report of `average`."""
    summary: Record = json.loads((folder / "average.jsonl.summary.json").read_text())
    return summary
