"""Fixtures for tests of `tools.papers`: quick commands, and a matrix of trainings that was run."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from onmt_entmax.cli import ending
from tests.commands import console
from tests.papers.matrices import write_matrix
from tools.papers import tables


@pytest.fixture(scope="package", autouse=True)
def forked_commands() -> Iterator[None]:
    """Let tools run their commands by the server of commands, if there is one.

    A matrix of three runs starts five commands. Each would import PyTorch and OpenNMT-py, which
    takes longer than its work; see `tests.command_server`.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ending, "CONSOLE", tuple(console()))
        yield


@pytest.fixture(scope="package")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A matrix that was run. Tests only read it, or change it by `restored_afterwards`."""
    path = write_matrix(tmp_path_factory.mktemp("matrix"))
    assert tables.main(["run", str(path), "--jobs", "2"]) == 0
    return path


@pytest.fixture
def restored_afterwards(finished: Path, tmp_path: Path) -> Iterator[Path]:
    """The same matrix for a test that may change its runs: they are restored after the test.

    A copy in another folder would not do, since the files of the runs name their own folder.
    """
    runs, unchanged = finished.parent / "runs", tmp_path / "unchanged"
    shutil.copytree(runs, unchanged)
    yield finished
    shutil.rmtree(runs)
    shutil.copytree(unchanged, runs)
