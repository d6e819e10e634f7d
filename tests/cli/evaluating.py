"""Calls of `onmt-entmax evaluate` for tests, on predicted tables and on files of tokens."""

import io
import json
import re
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

from onmt_entmax.cli import evaluate
from tests.cli.tables import write_table
from tests.in_process import exit_status

# Rows of a gold table; `read` has two targets.
GOLD = ("cat\tk æ t", "read\tɹ iː d", "read\tɹ ɛ d", "gnu\tn j uː")


class Evaluation(NamedTuple):
    """What a successful call printed, and what it wrote as JSON.

    Attributes:
        printed: the standard output.
        errors: the standard error.
        content: the figures of `--json`.
    """

    printed: str
    errors: str
    content: dict[str, Any]

    @property
    def scores(self) -> list[list[str]]:
        """The rows of the first printed table, heading included."""
        return _rows_of(self.printed.split("\n\n")[0])

    @property
    def comparisons(self) -> list[list[str]]:
        """The rows of the last printed table, which `--against` adds."""
        return _rows_of(self.printed.split("\n\n")[-1])


def _rows_of(table: str) -> list[list[str]]:
    """Return the cells of each row of a printed table, without the line above totals.

    Two spaces or more stand between cells, since names and headings may have one.
    """
    return [re.split(" {2,}", line) for line in table.splitlines() if line.strip("-")]


def run_evaluate(folder: Path, *arguments: object) -> Evaluation:
    """Run the command in this process; it must succeed.

    Args:
        folder: receives the file of `--json`.
        arguments: all other arguments.
    """
    report = folder / "scores" / "scores.json"  # in a new folder, which the command makes
    words = [*map(str, arguments), "--json", str(report)]
    with redirect_stdout(io.StringIO()) as printed, redirect_stderr(io.StringIO()) as errors:
        assert exit_status(evaluate.main, words) == 0, errors.getvalue()
    return Evaluation(printed.getvalue(), errors.getvalue(), json.loads(report.read_text()))


def write_files(folder: Path, **files: Sequence[str]) -> list[str]:
    """Write the lines of each option's file; return the options with the paths."""
    paths = {name: write_table(folder / name, *lines) for name, lines in files.items()}
    return [word for name, path in paths.items() for word in (f"--{name}", str(path))]


def table_arguments(
    folder: Path, gold: Sequence[str], predicted: Sequence[str]
) -> tuple[Path, str, Path]:
    """Write a gold table and a predicted one; return the arguments that evaluate the second."""
    predictions = write_table(folder / "predicted.tsv", *predicted)
    return predictions, "--reference", write_table(folder / "gold.tsv", *gold)
