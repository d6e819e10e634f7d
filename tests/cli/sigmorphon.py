"""Calls of `onmt-entmax prepare sigmorphon` for tests."""

from pathlib import Path

from onmt_entmax.cli import prepare_sigmorphon
from tests.commands import ROOT
from tests.in_process import exit_status

SAMPLES = ROOT / "data" / "samples"


def prepare(*arguments: object) -> None:
    """Run the command in this process."""
    assert exit_status(prepare_sigmorphon.main, [str(argument) for argument in arguments]) == 0


def read_lines(path: Path) -> list[str]:
    """Return the lines of a file, without their ends."""
    return path.read_text(encoding="utf-8").splitlines()
