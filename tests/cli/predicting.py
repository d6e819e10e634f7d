"""Calls of `onmt-entmax predict` for tests, and the rows of a table for them."""

from pathlib import Path

from onmt_entmax.cli import predict
from tests.in_process import exit_status

SOURCES = ("ab", "abcd", "da", "c")
HEADED = ("word\tpronunciation", *(f"{source}\t" for source in SOURCES))  # without targets


def predicted(model: Path, *arguments: object) -> int:
    """Run the command in this process; return the exit status."""
    return exit_status(predict.main, [str(word) for word in (model, *arguments)])
