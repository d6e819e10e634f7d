"""`tools.papers.commands`: commands get the signals that come to the program that runs them."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from onmt_entmax.cli import ending
from tools.papers.commands import Commands, Stopped

SLEEP = (sys.executable, "-c", "import time; time.sleep(10)")


def test_a_signal_that_comes_while_a_command_starts_is_passed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the main thread, the handler runs before the runner has noted the new process."""
    start = subprocess.Popen
    started: list[subprocess.Popen[bytes]] = []

    def start_and_signal(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        started.append(start(*arguments, **options))
        os.kill(os.getpid(), signal.SIGTERM)
        return started[-1]

    monkeypatch.setattr(ending, "CONSOLE", SLEEP)
    monkeypatch.setattr(subprocess, "Popen", start_and_signal)
    commands = Commands()
    with commands.passing_signals_on(), pytest.raises(Stopped):
        commands.execute([], tmp_path / "log.txt")
    assert [process.returncode for process in started] == [-signal.SIGTERM]
