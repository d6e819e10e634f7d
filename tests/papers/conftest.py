"""A matrix that was run, for the tests of `tools.papers.tables`, and quick commands."""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from onmt_entmax.cli import ending
from tests import warm
from tests.commands import server_socket
from tools.papers import tables


@pytest.fixture(scope="session", autouse=True)
def forked_commands() -> Iterator[None]:
    """Let commands that scripts start be forks of a warm process, where `tests.warm` offers one."""
    before = ending.CONSOLE
    socket = server_socket()
    if socket is not None:
        ending.CONSOLE = (sys.executable, "-S", "-E", warm.__file__, socket, warm.CONSOLE)
    yield
    ending.CONSOLE = before


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A matrix that the real command has run."""
    from tests.papers.matrices import write_matrix

    path = write_matrix(tmp_path_factory.mktemp("matrix"))
    assert tables.main(["run", str(path), "--jobs", "2"]) == 0
    return path


@pytest.fixture
def copied(finished: Path, tmp_path: Path) -> Iterator[Path]:
    """The matrix that was run, to change; afterwards its runs are as they were.

    Its files name their own folder, so that a copy elsewhere would not be the same matrix.
    """
    shutil.copytree(finished.parent / "runs", tmp_path / "kept")
    yield finished
    shutil.rmtree(finished.parent / "runs")
    shutil.copytree(tmp_path / "kept", finished.parent / "runs")
