"""Calls of `onmt-entmax prepare sigmorphon` for tests."""

import io
from contextlib import redirect_stdout
from pathlib import Path
from typing import NamedTuple

from onmt_entmax.cli import prepare_sigmorphon
from onmt_entmax.config import TrainingSetup
from onmt_entmax.options.train import training_setup
from tests.commands import ROOT
from tests.in_process import exit_status

SAMPLES = ROOT / "data" / "samples"


def run_prepare_sigmorphon(*arguments: object) -> None:
    """Run the command in this process."""
    assert exit_status(prepare_sigmorphon.main, [str(argument) for argument in arguments]) == 0


class Prepared(NamedTuple):
    """A folder with prepared data, and what was printed."""

    folder: Path
    printed: str

    def setup(self) -> TrainingSetup:
        """Return what the written configuration sets."""
        return training_setup(["-config", str(self.folder / "train.yaml")])


def prepare_into(folder: Path, *arguments: object) -> Prepared:
    """Run the command, whose `--out` is the folder; what it prints is returned with it."""
    with redirect_stdout(io.StringIO()) as printed:
        run_prepare_sigmorphon(*arguments, "--out", folder)
    return Prepared(folder, printed.getvalue())
