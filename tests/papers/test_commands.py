"""`tools.papers.commands`: signals are passed on to commands, and failed commands are named."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from onmt_entmax.cli import ending
from onmt_entmax.errors import UserError
from tools.papers.commands import Commands, Stopped

# Commands of Python in place of those of the console.
SLEEP = (sys.executable, "-c", "import time; time.sleep(10)")
FAIL = (sys.executable, "-c", "raise SystemExit(3)")
FAIL_WITH_AN_ERROR = (
    sys.executable,
    "-c",
    "print('train.py: error: no file\\nbye'); raise SystemExit(3)",
)


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


def test_a_command_that_fails_is_named_with_its_last_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ending, "CONSOLE", FAIL_WITH_AN_ERROR)
    log = tmp_path / "log.txt"
    with pytest.raises(UserError) as failed:
        Commands().execute(["train"], log)
    assert str(failed.value) == f"train ended with status 3: train.py: error: no file ({log})"


def test_errors_of_an_earlier_command_in_the_log_do_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ending, "CONSOLE", FAIL)
    log = tmp_path / "log.txt"
    log.write_text("train.py: error: of yesterday\n")
    with pytest.raises(UserError, match="train ended with status 3: no message"):
        Commands().execute(["train"], log)
