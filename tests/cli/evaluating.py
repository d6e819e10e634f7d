"""Calls of `onmt-entmax evaluate` on predicted tables, for tests."""

import json
from pathlib import Path
from typing import Any

from onmt_entmax.cli import evaluate
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
