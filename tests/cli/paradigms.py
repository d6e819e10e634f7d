"""Calls of `onmt-entmax paradigm` for tests."""

from pathlib import Path

from onmt_entmax.cli import paradigm
from tests.in_process import exit_status
from tests.reports import certificate

CELLS = {"german": {("V",): 3, ("V", "PST"): 2}, "english": {("V", "PST"): 1, ("N", "PL"): 1}}
WHOLE_SUPPORT = certificate(proven=9, mass=1.0)


def run_paradigm(model: Path, cells: Path, *arguments: object) -> int:
    """Run the command with a model and a file of cells; return the exit status."""
    words = [*map(str, arguments), "--model", str(model), "--cells", str(cells)]
    return exit_status(paradigm.main, words)
