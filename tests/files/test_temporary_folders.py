"""`temporary_folder`: a folder that is removed whatever ends the process."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from onmt_entmax.files import temporary_folder
from tests.commands import ENVIRONMENT, started

# A process that prints the name of a temporary folder with a file, and waits.
_UNPACKING = """
import sys, time
from pathlib import Path
from onmt_entmax.files import temporary_folder
with temporary_folder() as folder:
    (folder / "file").write_text("x")
    print(folder, flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT], ids=lambda number: number.name
)
def test_a_temporary_folder_is_removed_when_a_signal_ends_the_process(
    number: signal.Signals,
) -> None:
    with started(
        [sys.executable, "-c", _UNPACKING],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=ENVIRONMENT,
        text=True,
    ) as process:
        folder = Path(process.stdout.readline().strip())
        assert (folder / "file").exists()
        process.send_signal(number)
        process.wait(30)
    assert not folder.exists()


def test_a_second_signal_does_not_end_the_removal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Terminals and job schedulers often send one twice."""
    rmtree = shutil.rmtree

    def remove_under_a_signal(*arguments: object, **keywords: object) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        rmtree(*arguments, **keywords)

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(shutil, "rmtree", remove_under_a_signal)
    with pytest.raises(SystemExit), temporary_folder():
        os.kill(os.getpid(), signal.SIGTERM)
    assert list(tmp_path.iterdir()) == []
