"""Calls of `onmt-entmax evaluate` for tests, on predicted tables and on files of tokens."""

import io
import json
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

from onmt_entmax.cli import evaluate
from tests.cli.tables import write_table
from tests.in_process import exit_status

GOLD = ("cat\tk æ t", "read\tɹ iː d", "read\tɹ ɛ d", "gnu\tn j uː")


def evaluated(*arguments: object) -> int:
    """Run the command in this process; return the exit status."""
    return exit_status(evaluate.main, [str(argument) for argument in arguments])


def scores(folder: Path, *arguments: object) -> dict[str, Any]:
    """Return the figures that a successful call writes as JSON to a folder."""
    assert evaluated(*arguments, "--json", folder / "scores.json") == 0
    content: dict[str, Any] = json.loads((folder / "scores.json").read_text())
    return content


# --- files of tokens ---


def write_files(folder: Path, **files: Sequence[str]) -> list[str]:
    """Write the lines of each option's file; return the options with the paths."""
    paths = {name: write_table(folder / name, *lines) for name, lines in files.items()}
    return [word for name, path in paths.items() for word in (f"--{name}", str(path))]


class Evaluation(NamedTuple):
    """What a successful call printed, and what it wrote."""

    printed: str
    content: dict[str, Any]

    def row(self, name: str) -> list[str]:
        """Return the printed figures of the last line with a name."""
        lines = [line for line in self.printed.splitlines() if line.startswith(f"{name} ")]
        return lines[-1].removeprefix(name).split()


def evaluation_of(folder: Path, arguments: Sequence[str]) -> Evaluation:
    """Run the command, with `--json` in a new folder inside of another one."""
    report = folder / "scores" / "scores.json"
    with redirect_stdout(io.StringIO()) as printed:
        assert exit_status(evaluate.main, [*arguments, "--json", str(report)]) == 0
    return Evaluation(printed.getvalue(), json.loads(report.read_text()))
