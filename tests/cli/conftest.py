"""Data of a shared task, and a matrix that was run, for the tests of `onmt-entmax experiment`."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.commands import ROOT


@pytest.fixture(scope="session")
def conll2018() -> Path:
    """The folder of the CoNLL-SIGMORPHON 2018 data."""
    folder = Path(os.environ.get("ONMT_ENTMAX_DATA", ROOT.parent / "shared" / "data")) / "conll2018"
    if not folder.is_dir():
        pytest.skip(f"no CoNLL-SIGMORPHON 2018 data in {folder} (set ONMT_ENTMAX_DATA)")
    return folder


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A matrix that the real command has run."""
    from tests.matrices import command, write_matrix

    path = write_matrix(tmp_path_factory.mktemp("experiment"))
    done = command("run", path)
    assert done.returncode == 0, done.stderr
    return path


@pytest.fixture
def copied(finished: Path, tmp_path: Path) -> Iterator[Path]:
    """The matrix that was run, to change: its files say where they were, so they stay there."""
    shutil.copytree(finished.parent / "runs", tmp_path / "kept")
    yield finished
    shutil.rmtree(finished.parent / "runs")
    shutil.copytree(tmp_path / "kept", finished.parent / "runs")
