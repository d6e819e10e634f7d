"""Calls of `onmt-entmax predict` for tests, and a table for them."""

from pathlib import Path

from onmt_entmax.cli import predict
from tests.in_process import exit_status

SOURCES = ("ab", "abcd", "da", "c")
HEADED = ("word\tpronunciation", *(f"{source}\t" for source in SOURCES))


def write(path: Path, *rows: str) -> Path:
    """Write a table; return its path."""
    path.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    return path


def predicted(model: Path, *arguments: object) -> int:
    """Run the command in this process; return the exit status."""
    return exit_status(predict.main, [str(word) for word in (model, *arguments)])
