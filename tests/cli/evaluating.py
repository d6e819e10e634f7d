"""Calls of `onmt-entmax evaluate` for tests, on predicted tables and on files of tokens."""

import io
import json
import re
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

from onmt_entmax.cli import evaluate
from tests.cli.tables import write_table
from tests.in_process import exit_status

# Rows of a gold table; `read` has two targets.
GOLD = ("cat\tk æ t", "read\tɹ iː d", "read\tɹ ɛ d", "gnu\tn j uː")


def evaluated(*arguments: object) -> int:
    """Run the command in this process; return the exit status."""
    return exit_status(evaluate.main, [str(argument) for argument in arguments])


def scores(folder: Path, *arguments: object) -> dict[str, Any]:
    """Run the command, with `--json` in a folder; return the figures that it writes there."""
    assert evaluated(*arguments, "--json", folder / "scores.json") == 0
    content: dict[str, Any] = json.loads((folder / "scores.json").read_text())
    return content


# --- files of tokens ---


def write_files(folder: Path, **files: Sequence[str]) -> list[str]:
    """Write the lines of each option's file; return the options with the paths."""
    paths = {name: write_table(folder / name, *lines) for name, lines in files.items()}
    return [word for name, path in paths.items() for word in (f"--{name}", str(path))]


class Evaluation(NamedTuple):
    """What a successful call printed, and what it wrote as JSON."""

    printed: str
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


def evaluation_of(folder: Path, arguments: Sequence[str]) -> Evaluation:
    """Run the command, with `--json` in a new folder inside of another one."""
    report = folder / "scores" / "scores.json"
    with redirect_stdout(io.StringIO()) as printed:
        assert exit_status(evaluate.main, [*arguments, "--json", str(report)]) == 0
    return Evaluation(printed.getvalue(), json.loads(report.read_text()))
