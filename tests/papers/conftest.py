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
    with pytest.MonkeyPatch.context() as patch:
        socket = server_socket()
        if socket is not None:
            # The client needs neither site-packages (-S) nor variables of Python (-E), and starts
            # sooner without. The last word asks the server for the console command.
            client = (sys.executable, "-S", "-E", warm.__file__, socket)
            patch.setattr(ending, "CONSOLE", (*client, warm.CONSOLE))
        yield


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A matrix that the real command has run; a test that changes its runs takes `copied`."""
    from tests.papers.matrices import write_matrix

    path = write_matrix(tmp_path_factory.mktemp("matrix"))
    assert tables.main(["run", str(path), "--jobs", "2"]) == 0
    return path


@pytest.fixture
def copied(finished: Path, tmp_path: Path) -> Iterator[Path]:
    """The matrix that was run, to change; afterwards its runs are as they were.

    Its files name their own folder, so that a copy elsewhere would not be the same matrix.
    """
    runs, unchanged = finished.parent / "runs", tmp_path / "unchanged"
    shutil.copytree(runs, unchanged)
    yield finished
    shutil.rmtree(runs)
    shutil.copytree(unchanged, runs)
