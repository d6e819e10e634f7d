"""A process that ends while it writes a file or a folder leaves the old one."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from onmt_entmax.files import FileError, write_folder
from tests.commands import ENVIRONMENT, started
from tests.files.folders import names


@pytest.mark.parametrize(
    ("number", "status", "temporary_files"),
    [
        (signal.SIGKILL, -signal.SIGKILL, 1),  # nobody can remove the temporary file
        (signal.SIGTERM, 128 + signal.SIGTERM, 0),
        (signal.SIGHUP, 128 + signal.SIGHUP, 0),
        (signal.SIGINT, -signal.SIGINT, 0),
    ],
    ids=lambda value: value.name if isinstance(value, signal.Signals) else "",
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
    temporary = names(tmp_path) - {"file", "folder"}
    assert len(temporary) == temporary_files
    assert all(name.startswith(f".{kind}.") and name.endswith(".tmp") for name in temporary)


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_folder_that_cannot_take_its_place_leaves_the_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def write(text: str) -> None:
        def fill(path: Path) -> None:
            path.mkdir()
            (path / "weights").write_text(text)

        write_folder(tmp_path / "step_1", fill)

    write("old")
    write("newer")
    replace = os.replace

    def replace_or_fail(source: Path, target: Path) -> None:
        if str(source).endswith(".tmp"):
            raise error
        replace(source, target)

    monkeypatch.setattr(os, "replace", replace_or_fail)
    with pytest.raises((FileError, KeyboardInterrupt), match=r"No space left|^$"):
        write("newest")
    assert (tmp_path / "step_1" / "weights").read_text() == "newer"
    assert names(tmp_path) == {"step_1", "step_1/weights"}
