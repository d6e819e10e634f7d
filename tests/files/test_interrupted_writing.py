"""A process that ends while it writes a file or a folder leaves the old one."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from onmt_entmax.files import FileError, write_folder
from tests.commands import ENVIRONMENT, started
from tests.files.folders import contents


@pytest.mark.parametrize(
    ("number", "status", "temporary_files"),
    [
        # Nobody can remove the temporary file.
        pytest.param(signal.SIGKILL, -signal.SIGKILL, 1, id="SIGKILL"),
        pytest.param(signal.SIGTERM, 128 + signal.SIGTERM, 0, id="SIGTERM"),
        pytest.param(signal.SIGHUP, 128 + signal.SIGHUP, 0, id="SIGHUP"),
        pytest.param(signal.SIGINT, -signal.SIGINT, 0, id="SIGINT"),
    ],
)
@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_process_that_is_ended_leaves_the_old(
    tmp_path: Path, number: signal.Signals, status: int, temporary_files: int, kind: str
) -> None:
    (tmp_path / "file").write_text("before")
    (tmp_path / "folder").mkdir()
    with started(
        [sys.executable, "-m", "tests.files.waiting_writer", kind],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=tmp_path,
        env=ENVIRONMENT,
        text=True,
    ) as process:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        assert process.wait(30) == status
    assert (tmp_path / "file").read_text() == "before"
    temporary = contents(tmp_path) - {"file", "folder"}
    assert len(temporary) == temporary_files
    assert all(name.startswith(f".{kind}.") and name.endswith(".tmp") for name in temporary)


# --- folders that cannot take their place ----------------------------------------------------


def write_step(folder: Path, weights: str) -> None:
    """Write the folder `step_1`, in the place of an older one, with one file."""

    def fill(path: Path) -> None:
        path.mkdir()
        (path / "weights").write_text(weights)

    write_folder(folder / "step_1", fill)


@pytest.fixture
def replaced_once(tmp_path: Path) -> Path:
    """A folder whose `step_1` was written twice."""
    write_step(tmp_path, "old")
    write_step(tmp_path, "newer")
    return tmp_path


@pytest.mark.parametrize(
    ("cause", "error", "message"),
    [
        pytest.param(
            OSError(errno.ENOSPC, "No space left on device"),
            FileError,
            "No space left",
            id="a full disk",
        ),
        pytest.param(KeyboardInterrupt(), KeyboardInterrupt, "^$", id="Ctrl-C"),
    ],
)
def test_a_folder_that_cannot_take_its_place_leaves_the_old(
    replaced_once: Path,
    monkeypatch: pytest.MonkeyPatch,
    cause: BaseException,
    error: type[BaseException],
    message: str,
) -> None:
    replace = os.replace

    def replace_or_fail(source: Path, target: Path) -> None:
        """Fail to put the new folder in its place; anything else may move."""
        if str(source).endswith(".tmp"):
            raise cause
        replace(source, target)

    monkeypatch.setattr(os, "replace", replace_or_fail)
    with pytest.raises(error, match=message):
        write_step(replaced_once, "newest")
    assert contents(replaced_once) == {"step_1", "step_1/weights"}
    assert (replaced_once / "step_1" / "weights").read_text() == "newer"
